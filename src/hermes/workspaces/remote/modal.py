"""Modal sandboxes through the `modal` library, which is imported when one is opened."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from typing import Any

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.workspaces.child import Sink
from hermes.workspaces.confinement.scope import ConfinementReport
from hermes.workspaces.remote.calls import BASH, RemoteProcess
from hermes.workspaces.remote.cli import run_blocking
from hermes.workspaces.runner import ResourceLimits

# The maximum lifetime that the service allows.
LIFETIME_SECONDS = 24 * 60 * 60


class ModalSettings(Value):
    app: str = "hermes-agent"
    image: str = "nikolaik/python-nodejs:python3.11-nodejs20"
    persistent: bool = True
    network: bool = True
    limits: ResourceLimits = ResourceLimits(cpus=1, memory_mb=5120)


class _SandboxRef(Value):
    """Refers to the session's sandbox, or to a snapshot of its files."""

    sandbox: str = ""
    image: str = ""


class ModalMachine:
    """`folder` belongs to the session and holds the name of its last snapshot; `sdk` is the module
    `modal`."""

    def __init__(self, settings: ModalSettings, folder: Path, sdk: Any = None) -> None:
        self._settings = settings
        self._file = folder / "modal.json"
        self._sdk = sdk
        self._sandbox: Any = None
        self._opening = asyncio.Lock()

    @property
    def protection(self) -> ConfinementReport:
        network = "the network is open" if self._settings.network else "no network"
        return ConfinementReport(
            kind="cloud",
            details=(f"commands run in a Modal sandbox; {network}",),
            gaps=("the service sees files and commands",),
        )

    async def open(self) -> None:
        async with self._opening:
            if self._sandbox is not None and await self._sandbox.poll.aio() is None:
                return
            modal = self._modal()
            kept = self._load_ref()
            try:
                self._sandbox = await self._reconnect(modal, kept) or await self._new(modal, kept)
            except modal.exception.Error as error:
                raise ToolError(f"The Modal sandbox cannot be started: {error}") from error
            self._save_ref(_SandboxRef(sandbox=self._sandbox.object_id, image=kept.image))

    async def start(self, line: str, data: bytes, out: Sink, errors: Sink) -> RemoteProcess:
        raw = line.encode("utf-8", "surrogateescape")
        if b"\0" in raw:
            raise ToolError("The command contains a NUL byte. Remove it.")
        run = ModalProcess(out, errors)
        await run.begin(self._sandbox, raw + b"\0" + data)
        return run

    def ask_now(self, line: str, data: bytes) -> bytes:
        if self._sandbox is None:
            run_blocking(self.open)
        script = f'IFS= read -rd "" __data; {line}'
        process = self._sandbox.exec(*BASH, text=False)
        process.stdin.write(script.encode() + b"\0" + data + b"\0")
        process.stdin.write_eof()
        process.stdin.drain()
        answer: bytes = process.stdout.read()
        return answer

    async def hibernate(self) -> None:
        """Take a snapshot of the files and end the sandbox; memory and processes are lost."""
        if self._sandbox is None:
            return
        image = await self._sandbox.snapshot_filesystem.aio()
        await self._sandbox.terminate.aio()
        self._sandbox = None
        self._save_ref(_SandboxRef(image=image.object_id))

    async def close(self, *, keep: bool = False) -> None:
        if self._sandbox is None or keep:
            return
        if self._settings.persistent:
            await self.hibernate()
            return
        await self._sandbox.terminate.aio()
        self._sandbox = None

    def _modal(self) -> Any:
        if self._sdk is None:
            try:
                self._sdk = importlib.import_module("modal")
            except ImportError as error:
                raise ToolError(
                    "Modal sandboxes need the extra `modal`. Ask the user to install it."
                ) from error
        return self._sdk

    async def _reconnect(self, modal: Any, kept: _SandboxRef) -> Any:
        """Return the sandbox of an earlier Hermes, if it still runs."""
        if not kept.sandbox:
            return None
        try:
            sandbox = await modal.Sandbox.from_id.aio(kept.sandbox)
            return sandbox if await sandbox.poll.aio() is None else None
        except modal.exception.Error:
            return None

    async def _new(self, modal: Any, kept: _SandboxRef) -> Any:
        settings, limits = self._settings, self._settings.limits
        app = await modal.App.lookup.aio(settings.app, create_if_missing=True)
        if kept.image:
            image = modal.Image.from_id(kept.image)
        else:
            image = modal.Image.from_registry(settings.image)
        return await modal.Sandbox.create.aio(
            "sleep",
            "infinity",
            app=app,
            image=image,
            cpu=limits.cpus or None,
            memory=limits.memory_mb or None,
            timeout=LIFETIME_SECONDS,
            block_network=not settings.network,
        )

    def _load_ref(self) -> _SandboxRef:
        try:
            return decode(_SandboxRef, self._file.read_bytes())
        except (FileNotFoundError, DecodeError):
            return _SandboxRef()

    def _save_ref(self, kept: _SandboxRef) -> None:
        if self._settings.persistent:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(self._file, encode(kept))


class ModalProcess:
    def __init__(self, out: Sink, errors: Sink) -> None:
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._sinks = (out, errors)
        self._work: asyncio.Task[None] | None = None

    async def begin(self, sandbox: Any, feed: bytes) -> None:
        process = await sandbox.exec.aio(*BASH, text=False)
        process.stdin.write(feed)
        process.stdin.write_eof()
        await process.stdin.drain.aio()
        self._work = asyncio.ensure_future(self._follow(process))

    def close(self) -> None:
        if self._work:
            self._work.cancel()
        if not self.ended.done():
            self.ended.set_result(-1)

    async def _follow(self, process: Any) -> None:
        code = -1
        try:
            async with asyncio.TaskGroup() as group:
                for stream, sink in zip((process.stdout, process.stderr), self._sinks, strict=True):
                    group.create_task(_copy(stream, sink))
            code = await process.wait.aio()
        finally:
            if not self.ended.done():
                self.ended.set_result(code)


async def _copy(stream: Any, sink: Sink) -> None:
    async for data in stream:
        sink(data)
