"""Daytona sandboxes through their REST API, with a bash over polled commands."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import os
import re
import ssl
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.config.execution_settings import TerminalSettings
from hermes.core.errors import ToolError
from hermes.workspaces.child import Sink
from hermes.workspaces.confinement.scope import ConfinementReport, cloud_report
from hermes.workspaces.remote.calls import READ_LINE, RemoteProcess
from hermes.workspaces.shell_state import shell_quote

# One argument holds at most 128 KiB, and base64 makes four bytes of three.
PIECE_BYTES = 60_000
FETCH_BYTES = 300_000
# Seconds between two looks, while there is nothing new.
PAUSES = (0.05, 0.1, 0.2, 0.4, 1.0)
CLOSE_SECONDS = 10.0
PLACE = "/tmp/.hermes-calls"


class ExecutionResult(Value):
    """The result of a command, as the service sends it."""

    exitCode: int = 0
    result: str = ""


# Blocks; ToolError when the service is unreachable or refuses.
Execute = Callable[[str], ExecutionResult]


class PolledProcess:
    def __init__(self, execute: Execute, folder: str, out: Sink, errors: Sink) -> None:
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._execute = execute
        self._folder = folder
        self._sinks = (out, errors)
        self._fetched = [0, 0]
        self._closed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    @property
    def gone(self) -> bool:
        return self._following is not None and self._following.done()

    async def begin(self, feed: bytes) -> None:
        """Start only after all input has arrived."""
        folder = self._folder
        await self._do(f"umask 077; mkdir -p {folder} && : >{folder}/in")
        for at in range(0, len(feed), PIECE_BYTES):
            piece = base64.b64encode(feed[at : at + PIECE_BYTES]).decode()
            await self._do(f"printf %s {piece} | base64 -d >>{folder}/in")
        line = (
            # The input may contain secrets, so it is removed even if Hermes dies.
            f"exec <{folder}/in; rm -f {folder}/in; "
            f"bash --norc --noprofile -c {shell_quote(READ_LINE)} >{folder}/out "
            f"2>{folder}/err; echo $? >{folder}/code; mv {folder}/code {folder}/done"
        )
        # Detached: the command of the service itself ends at once.
        detached = f"setsid bash -c {shell_quote(line)} </dev/null >/dev/null 2>&1 &"
        await self._do(f"bash -c {shell_quote(detached)}")
        self._following = asyncio.ensure_future(self._follow())

    def close(self) -> None:
        self._closed.set()
        if not self.ended.done():
            self.ended.set_result(-1)

    def end(self) -> asyncio.Task[None]:
        """Close; the task ends when its files are removed."""
        assert self._following is not None
        self.close()
        return self._following

    async def _do(self, command: str) -> str:
        done = await asyncio.to_thread(self._execute, command)
        if done.exitCode:
            raise ToolError(f"The service failed: {done.result.strip()[:300]}")
        return done.result

    async def _follow(self) -> None:
        """Follow until it has ended and everything has arrived, it was closed, or the service is
        unreachable."""
        quiet, ended = 0, -1
        try:
            while not self._closed.is_set():
                code, fresh = await self._fetch()
                if code is not None and not fresh:
                    ended = code
                    return
                quiet = 0 if fresh else quiet + 1
                if not fresh:
                    pause = PAUSES[min(quiet, len(PAUSES)) - 1]
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._closed.wait(), pause)
        except ToolError:
            return
        finally:
            if not self.ended.done():
                self.ended.set_result(ended)
            # Again if a file was created meanwhile; a removed folder gets no new files.
            remove = f"rm -rf {self._folder} || rm -rf {self._folder}"
            with contextlib.suppress(ToolError):
                await asyncio.to_thread(self._execute, remove)

    async def _fetch(self) -> tuple[int | None, bool]:
        """Ask first whether it has ended: its earlier output is then certainly visible."""
        parts = [f"cat {self._folder}/done 2>/dev/null || echo"]
        for name, start in zip(("out", "err"), self._fetched, strict=True):
            show = f"tail -c +{start + 1} {self._folder}/{name} 2>/dev/null | head -c {FETCH_BYTES}"
            parts.append(f"{show} | base64 -w0; echo")
        lines = (await self._do("; ".join(parts))).split("\n")
        fresh = False
        for at, sink in enumerate(self._sinks):
            data = _decode_output(lines[at + 1] if len(lines) > at + 1 else "")
            self._fetched[at] += len(data)
            if data and not self._closed.is_set():
                fresh = True
                sink(data)
        return (int(lines[0]) if lines[0].strip() else None), fresh


def _decode_output(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ToolError("The service sent an unexpected answer.") from error


URL = "https://app.daytona.io/api"
REQUEST_SECONDS = 60.0
START_SECONDS = 600.0
# The state of a recently used sandbox is not requested again.
FRESH_SECONDS = 30.0
T = TypeVar("T")

_WAKES = ("stopped", "archived", "paused")
_FAILED = ("error", "build_failed", "destroyed", "destroying")


class _Sandbox(Value):
    id: str
    state: str = ""
    toolboxProxyUrl: str = ""
    errorReason: str | None = ""


class DaytonaMachine:
    """A Daytona sandbox. The service also stops it after the idle time in the settings."""

    def __init__(
        self, terminal: TerminalSettings, key: str, *, api_key: str, url: str = URL
    ) -> None:
        if not api_key:
            raise ToolError("Daytona needs DAYTONA_API_KEY. Ask the user to set it.")
        self._terminal = terminal
        self._api_key = api_key
        self._url = url.rstrip("/")
        self._name = "hermes-" + re.sub(r"[^A-Za-z0-9-]", "-", key)
        self._sandbox: _Sandbox | None = None
        # Another machine object may have used this sandbox; its files may still be there.
        self._own = f"{os.getpid()}-{time.time_ns():x}"
        self._numbers = count()
        self._runs: set[PolledProcess] = set()
        self._opening = asyncio.Lock()
        self._used = 0.0

    @property
    def protection(self) -> ConfinementReport:
        return cloud_report("Daytona", network=self._terminal.docker_network)

    async def open(self) -> None:
        async with self._opening:
            if self._sandbox is None or time.monotonic() - self._used > FRESH_SECONDS:
                await asyncio.to_thread(self._ensure_running)

    async def start(self, feed: bytes, out: Sink, errors: Sink) -> RemoteProcess:
        folder = f"{PLACE}/{self._own}-{next(self._numbers)}"
        run = PolledProcess(self._execute, folder, out, errors)
        await run.begin(feed)
        self._runs = {each for each in self._runs if not each.gone} | {run}
        return run

    def ask_now(self, line: str, data: bytes) -> bytes:
        if self._sandbox is None:
            self._ensure_running()
        packed = base64.b64encode(data).decode()
        script = f"__data=$(printf %s {packed} | base64 -d; printf .); __data=${{__data%.}}; {line}"
        done = self._execute(f"bash -c {shell_quote(f'{{ {script}; }} | base64 -w0')}")
        return _decode_output(done.result.strip())

    async def hibernate(self) -> None:
        await self._close_runs()
        await asyncio.to_thread(self._stop, keep=True)

    async def close(self, *, keep: bool = False) -> None:
        await self._close_runs()
        if not keep:
            await asyncio.to_thread(self._stop, keep=self._terminal.container_persistent)

    async def _close_runs(self) -> None:
        """Wait until all remote input and output files are removed, up to a limit."""
        if self._runs:
            await asyncio.wait([each.end() for each in self._runs], timeout=CLOSE_SECONDS)
        self._runs.clear()

    def _stop(self, *, keep: bool) -> None:
        if self._sandbox is None:
            return
        path = f"/sandbox/{self._sandbox.id}"
        if keep:
            self._request("POST", f"{path}/stop", accept=(404,))
        else:
            self._request("DELETE", path, accept=(404,))
        self._sandbox = None

    def _ensure_running(self) -> None:
        """Return the session's sandbox, created or started if needed."""
        deadline = time.monotonic() + START_SECONDS
        found = self._find() or self._make()
        asked = False
        while found.state != "started":
            if found.state in _FAILED:
                reason = found.errorReason or found.state
                raise ToolError(f"The Daytona sandbox cannot be used: {reason}.")
            if time.monotonic() > deadline:
                raise ToolError("The Daytona sandbox did not start in time. Try again later.")
            if found.state in _WAKES and not asked:
                self._request("POST", f"/sandbox/{found.id}/start", accept=(404,))
                asked = True
            time.sleep(0.2)
            found = self._find() or found
        self._sandbox = found
        self._used = time.monotonic()

    def _find(self) -> _Sandbox | None:
        status, body = self._request("GET", f"/sandbox/{quote(self._name)}", accept=(404,))
        return None if status == 404 else _decode(_Sandbox, body)

    def _make(self) -> _Sandbox:
        terminal = self._terminal
        wanted: dict[str, Any] = {
            "name": self._name,
            "labels": {"created-by": "hermes"},
            "autoStopInterval": max(1, terminal.lifetime_seconds // 60),
            "networkBlockAll": not terminal.docker_network,
        }
        # Without an image, the default of the service applies.
        if terminal.daytona_image:
            wanted["buildInfo"] = {"dockerfileContent": f"FROM {terminal.daytona_image}\n"}
            # Only built sandboxes can choose their size.
            memory, disk = terminal.container_memory / 1024, terminal.container_disk / 1024
            sizes = {"cpu": terminal.container_cpu, "memory": memory, "disk": disk}
            wanted |= {name: max(1, round(size)) for name, size in sizes.items() if size}
        return _decode(_Sandbox, self._request("POST", "/sandbox", wanted)[1])

    def _execute(self, command: str) -> ExecutionResult:
        sandbox = self._sandbox
        if sandbox is None:
            raise ToolError("The Daytona sandbox is not running. Try again.")
        base = sandbox.toolboxProxyUrl.rstrip("/") or f"{self._url}/toolbox"
        url = f"{base}/{sandbox.id}/process/execute"
        try:
            _, body = self._request("POST", url, {"command": command, "timeout": 60})
        except ToolError:
            self._sandbox = None  # it may have stopped; the next call asks for its state
            raise
        self._used = time.monotonic()
        return _decode(ExecutionResult, body)

    def _request(
        self, method: str, path: str, value: object = None, *, accept: Sequence[int] = ()
    ) -> tuple[int, bytes]:
        """Return status and body. Raises ToolError for an error that is not accepted."""
        parts = urlsplit(path if "://" in path else self._url + path)
        headers = {"Authorization": f"Bearer {self._api_key}", "Accept": "application/json"}
        body = None if value is None else encode(value)
        if body is not None:
            headers["Content-Type"] = "application/json"
        host, port = parts.hostname or "", parts.port
        if parts.scheme == "https":
            secure = ssl.create_default_context()
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=REQUEST_SECONDS, context=secure
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=REQUEST_SECONDS)
        try:
            target = parts.path + (f"?{parts.query}" if parts.query else "")
            connection.request(method, target, body=body, headers=headers)
            answer = connection.getresponse()
            status, received = answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise ToolError(f"Daytona is not reachable: {error}. Try again later.") from error
        finally:
            connection.close()
        if status in (401, 403):
            raise ToolError("Daytona rejected the key. Ask the user to check it.")
        if status >= 400 and status not in accept:
            message = received.decode("utf-8", "replace").strip()[:200]
            raise ToolError(f"Daytona refused the request ({status}): {message}")
        return status, received


def _decode(kind: type[T], body: bytes) -> T:
    try:
        return decode(kind, body)
    except DecodeError as error:
        raise ToolError(f"Daytona sent an unexpected answer: {error}") from error
