"""Modal sandboxes through the `modal` library, which is imported when one is opened."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from pathlib import Path
from typing import Any

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.config.execution_settings import TerminalSettings
from hermes.config.extras import need_extra
from hermes.core.errors import ToolError
from hermes.workspaces.child import Sink
from hermes.workspaces.confinement.scope import ConfinementReport, cloud_report
from hermes.workspaces.remote.calls import BASH, RemoteProcess
from hermes.workspaces.remote.cli import run_blocking

# The maximum lifetime that the service allows.
LIFETIME_SECONDS = 24 * 60 * 60
APP = "hermes-agent"


class _SandboxRef(Value):
    """Refers to the session's sandbox, or to a snapshot of its files."""

    sandbox: str = ""
    image: str = ""


class ModalMachine:
    """A Modal sandbox. `folder` belongs to the session and holds the name of its last snapshot;
    `sdk` is the module `modal`."""

    def __init__(self, terminal: TerminalSettings, folder: Path, sdk: Any = None) -> None:
        self._terminal = terminal
        self._file = folder / "modal.json"
        self._sdk = sdk
        self._sandbox: Any = None
        self._opening = asyncio.Lock()

    @property
    def protection(self) -> ConfinementReport:
        return cloud_report("Modal", network=self._terminal.docker_network)

    async def open(self) -> None:
        async with self._opening:
            if self._sandbox is not None and await self._sandbox.poll.aio() is None:
                return
            try:
                modal = self._sdk = self._sdk or importlib.import_module("modal")
            except ImportError as error:
                raise ToolError(need_extra("Modal sandboxes", "modal")) from error
            kept = _SandboxRef()
            with contextlib.suppress(FileNotFoundError, DecodeError):
                kept = decode(_SandboxRef, self._file.read_bytes())
            self._sandbox = None
            # The sandbox of an earlier Hermes may still run.
            with contextlib.suppress(modal.exception.Error):
                earlier = await modal.Sandbox.from_id.aio(kept.sandbox) if kept.sandbox else None
                if earlier is not None and await earlier.poll.aio() is None:
                    self._sandbox = earlier
            if self._sandbox is None:
                self._sandbox = await self._create(modal, kept.image)
            self._save_ref(_SandboxRef(sandbox=self._sandbox.object_id, image=kept.image))

    async def _create(self, modal: Any, image: str) -> Any:
        terminal = self._terminal
        try:
            return await modal.Sandbox.create.aio(
                "sleep",
                "infinity",
                app=await modal.App.lookup.aio(APP, create_if_missing=True),
                image=modal.Image.from_id(image)
                if image
                else modal.Image.from_registry(terminal.modal_image),
                cpu=terminal.container_cpu or None,
                memory=terminal.container_memory or None,
                timeout=LIFETIME_SECONDS,
                block_network=not terminal.docker_network,
            )
        except modal.exception.Error as error:
            raise ToolError(f"The Modal sandbox cannot be started: {error}") from error

    async def start(self, feed: bytes, out: Sink, errors: Sink) -> RemoteProcess:
        run = ModalProcess(out, errors)
        await run.begin(self._sandbox, feed)
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
        if self._terminal.container_persistent:
            await self.hibernate()
        else:
            await self._sandbox.terminate.aio()
            self._sandbox = None

    def _save_ref(self, kept: _SandboxRef) -> None:
        if self._terminal.container_persistent:
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
        async def copy(stream: Any, sink: Sink) -> None:
            async for data in stream:
                sink(data)

        code = -1
        try:
            async with asyncio.TaskGroup() as group:
                for stream, sink in zip((process.stdout, process.stderr), self._sinks, strict=True):
                    group.create_task(copy(stream, sink))
            code = await process.wait.aio()
        finally:
            if not self.ended.done():
                self.ended.set_result(code)
