"""Daytona sandboxes through their REST API: created when needed, stopped when idle."""

from __future__ import annotations

import asyncio
import http.client
import os
import re
import ssl
import time
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.workspaces.child import Sink
from hermes.workspaces.confinement.protection import ConfinementReport
from hermes.workspaces.far.machine import RemoteProcess
from hermes.workspaces.far.polled import ExecutionResult, PolledExecutor
from hermes.workspaces.limits import ResourceLimits

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
