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
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.workspaces.child import Sink
from hermes.workspaces.confinement.scope import ConfinementReport
from hermes.workspaces.remote.calls import READ_LINE, RemoteProcess
from hermes.workspaces.runner import ResourceLimits
from hermes.workspaces.shell_state import shell_quote

# One argument holds at most 128 KiB, and base64 makes four bytes of three.
PIECE_BYTES = 60_000
FETCH_BYTES = 300_000
PAUSES = (0.05, 0.1, 0.2, 0.4)
SLOWEST_SECONDS = 1.0
CLOSE_SECONDS = 10.0
PLACE = "/tmp/.hermes-calls"


class ExecutionResult(Value):
    code: int
    text: str


# Blocks; ToolError when the service is unreachable or refuses.
Execute = Callable[[str], ExecutionResult]


class PolledExecutor:
    """Starts lines through `execute`; `name` keeps the files of different machines apart."""

    def __init__(self, execute: Execute, name: str) -> None:
        self._execute = execute
        self._name = name
        self._numbers = count()
        self._runs: set[PolledProcess] = set()

    async def start(self, line: str, data: bytes, out: Sink, errors: Sink) -> PolledProcess:
        raw = line.encode("utf-8", "surrogateescape")
        if b"\0" in raw:
            raise ToolError("The command contains a NUL byte. Remove it.")
        place = f"{PLACE}/{self._name}-{next(self._numbers)}"
        run = PolledProcess(self._execute, place, out, errors)
        await run.begin(raw + b"\0" + data)
        self._runs = {each for each in self._runs if not each.gone} | {run}
        return run

    async def close(self) -> None:
        """Wait until all remote input and output files are removed, up to a limit."""
        tasks = [each.end() for each in self._runs]
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
        self._runs.clear()

    def ask_now(self, line: str, data: bytes) -> bytes:
        packed = base64.b64encode(data).decode()
        script = f"__data=$(printf %s {packed} | base64 -d; printf .); __data=${{__data%.}}; {line}"
        done = self._execute(f"bash -c {shell_quote(f'{{ {script}; }} | base64 -w0')}")
        return _decode_output(done.text.strip())


class PolledProcess:
    def __init__(self, execute: Execute, place: str, out: Sink, errors: Sink) -> None:
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._execute = execute
        self._place = place
        self._sinks = (out, errors)
        self._fetched = [0, 0]
        self._closed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    @property
    def gone(self) -> bool:
        return self._following is not None and self._following.done()

    async def begin(self, feed: bytes) -> None:
        """Start only after all input has arrived."""
        place = self._place
        await self._do(f"umask 077; mkdir -p {place} && : >{place}/in")
        for at in range(0, len(feed), PIECE_BYTES):
            piece = base64.b64encode(feed[at : at + PIECE_BYTES]).decode()
            await self._do(f"printf %s {piece} | base64 -d >>{place}/in")
        line = (
            # The input may contain secrets, so it is removed even if Hermes dies.
            f"exec <{place}/in; rm -f {place}/in; "
            f"bash --norc --noprofile -c {shell_quote(READ_LINE)} >{place}/out "
            f"2>{place}/err; echo $? >{place}/code; mv {place}/code {place}/done"
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
        if done.code:
            raise ToolError(f"The service failed: {done.text.strip()[:300]}")
        return done.text

    async def _follow(self) -> None:
        """Follow until it has ended and everything has arrived, it was closed, or the service is
        unreachable."""
        quiet = 0
        try:
            while not self._closed.is_set():
                code, fresh = await self._fetch()
                if code is not None and not fresh:
                    self._end(code)
                    return
                quiet = 0 if fresh else quiet + 1
                if not fresh:
                    pauses = PAUSES[quiet - 1 : quiet] or (SLOWEST_SECONDS,)
                    await self._pause(pauses[0])
        except ToolError:
            self._end(-1)
        finally:
            # Again if a file was created meanwhile; a removed folder gets no new files.
            remove = f"rm -rf {self._place} || rm -rf {self._place}"
            with contextlib.suppress(ToolError):
                await asyncio.to_thread(self._execute, remove)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closed.wait()

    async def _fetch(self) -> tuple[int | None, bool]:
        """Ask first whether it has ended: its earlier output is then certainly visible."""
        parts = [f"cat {self._place}/done 2>/dev/null || echo"]
        for name, start in zip(("out", "err"), self._fetched, strict=True):
            show = f"tail -c +{start + 1} {self._place}/{name} 2>/dev/null | head -c {FETCH_BYTES}"
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

    def _end(self, code: int) -> None:
        if not self.ended.done():
            self.ended.set_result(code)


def _decode_output(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ToolError("The service sent an unexpected answer.") from error


REQUEST_SECONDS = 60.0
START_SECONDS = 600.0
# The state of a recently used sandbox is not requested again.
FRESH_SECONDS = 30.0
T = TypeVar("T")

_WAKES = ("stopped", "archived", "paused")
_FAILED = ("error", "build_failed", "destroyed", "destroying")


class DaytonaSettings(Value):
    """`snapshot` or `image` define the sandbox; without them, the default of the service applies.
    The service also stops a sandbox after `idle_minutes`."""

    url: str = "https://app.daytona.io/api"
    key: str = ""
    image: str = ""
    snapshot: str = ""
    persistent: bool = True
    network: bool = True
    idle_minutes: int = 5
    limits: ResourceLimits = ResourceLimits(cpus=1, memory_mb=5120, disk_mb=10_240)


class _Sandbox(Value):
    id: str
    state: str = ""
    toolboxProxyUrl: str = ""
    errorReason: str | None = ""


class DaytonaMachine:
    def __init__(self, settings: DaytonaSettings, key: str) -> None:
        if not settings.key:
            raise ToolError("Daytona needs DAYTONA_API_KEY. Ask the user to set it.")
        self._settings = settings
        self._name = "hermes-" + re.sub(r"[^A-Za-z0-9-]", "-", key)
        self._sandbox: _Sandbox | None = None
        # Another machine object may have used this sandbox; its files may still be there.
        self._polled = PolledExecutor(self._execute, f"{os.getpid()}-{time.time_ns():x}")
        self._opening = asyncio.Lock()
        self._used = 0.0

    @property
    def protection(self) -> ConfinementReport:
        network = "the network is open" if self._settings.network else "no network"
        return ConfinementReport(
            kind="cloud",
            details=(f"commands run in a Daytona sandbox; {network}",),
            gaps=("the service sees files and commands",),
        )

    async def open(self) -> None:
        async with self._opening:
            if self._sandbox is None or time.monotonic() - self._used > FRESH_SECONDS:
                await asyncio.to_thread(self._ensure_running)

    async def start(self, line: str, data: bytes, out: Sink, errors: Sink) -> RemoteProcess:
        return await self._polled.start(line, data, out, errors)

    def ask_now(self, line: str, data: bytes) -> bytes:
        if self._sandbox is None:
            self._ensure_running()
        return self._polled.ask_now(line, data)

    async def hibernate(self) -> None:
        await self._polled.close()
        await asyncio.to_thread(self._stop, keep=True)

    async def close(self, *, keep: bool = False) -> None:
        await self._polled.close()
        if not keep:
            await asyncio.to_thread(self._stop, keep=self._settings.persistent)

    def _stop(self, *, keep: bool) -> None:
        if self._sandbox is None:
            return
        path = f"/sandbox/{self._sandbox.id}"
        if keep:
            self._call("POST", f"{path}/stop")
        else:
            self._call("DELETE", path)
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
                self._call("POST", f"/sandbox/{found.id}/start")
                asked = True
            time.sleep(0.2)
            found = self._find() or found
        self._sandbox = found
        self._used = time.monotonic()

    def _find(self) -> _Sandbox | None:
        status, body = self._request("GET", f"/sandbox/{quote(self._name)}")
        return None if status == 404 else self._check_status(status, body)

    def _make(self) -> _Sandbox:
        settings, limits = self._settings, self._settings.limits
        wanted: dict[str, Any] = {
            "name": self._name,
            "labels": {"created-by": "hermes"},
            "autoStopInterval": settings.idle_minutes,
            "networkBlockAll": not settings.network,
        }
        if settings.snapshot:
            wanted["snapshot"] = settings.snapshot
        elif settings.image:
            wanted["buildInfo"] = {"dockerfileContent": f"FROM {settings.image}\n"}
            # Only built sandboxes can choose their size.
            sizes = {"cpu": limits.cpus, "memory": limits.memory_mb, "disk": limits.disk_mb}
            units = {"cpu": 1, "memory": 1024, "disk": 1024}
            wanted |= {k: max(1, round(v / units[k])) for k, v in sizes.items() if v}
        return self._check_status(*self._request("POST", "/sandbox", wanted))

    def _execute(self, command: str) -> ExecutionResult:
        sandbox = self._sandbox
        if sandbox is None:
            raise ToolError("The Daytona sandbox is not running. Try again.")
        base = sandbox.toolboxProxyUrl.rstrip("/") or f"{self._settings.url}/toolbox"
        url = f"{base}/{sandbox.id}/process/execute"
        status, body = self._request("POST", url, {"command": command, "timeout": 60})
        if status >= 400:
            self._sandbox = None  # it may have stopped; the next call asks for its state
            raise ToolError(f"Daytona refused the command ({status}): {_words(body)}")
        self._used = time.monotonic()
        answer = _decode(_Execution, body)
        return ExecutionResult(code=answer.exitCode, text=answer.result)

    def _call(self, method: str, path: str) -> None:
        status, body = self._request(method, path)
        if status >= 400 and status != 404:
            raise ToolError(f"Daytona refused ({status}): {_words(body)}")

    def _check_status(self, status: int, body: bytes) -> _Sandbox:
        if status in (401, 403):
            raise ToolError("Daytona rejected the key. Ask the user to check it.")
        if status >= 400:
            raise ToolError(f"Daytona refused ({status}): {_words(body)}")
        return _decode(_Sandbox, body)

    def _request(self, method: str, path: str, value: object = None) -> tuple[int, bytes]:
        url = path if "://" in path else self._settings.url.rstrip("/") + path
        headers = {"Authorization": f"Bearer {self._settings.key}", "Accept": "application/json"}
        body = None if value is None else encode(value)
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            return _exchange(method, url, headers, body)
        except (OSError, http.client.HTTPException) as error:
            raise ToolError(f"Daytona is not reachable: {error}. Try again later.") from error


class _Execution(Value):
    exitCode: int = 0
    result: str = ""


def _exchange(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None
) -> tuple[int, bytes]:
    parts = urlsplit(url)
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
        connection.request(method, target, body=body, headers=dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _decode(kind: type[T], body: bytes) -> T:
    try:
        return decode(kind, body)
    except DecodeError as error:
        raise ToolError(f"Daytona sent an unexpected answer: {error}") from error


def _words(body: bytes) -> str:
    return body.decode("utf-8", "replace").strip()[:200]
