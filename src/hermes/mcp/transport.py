"""Transports: a child process, which is killed when its owner dies, or HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import ssl
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, BinaryIO

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.core.errors import ConfigError
from hermes.mcp.server import McpServer, Unreachable, child_environment
from hermes.workspaces.process_tree import identity

QUIET_SECONDS = 0.5
TERM_SECONDS = 2.0
_CHUNK = 65_536
_LOG_BYTES = 2_000_000

Received = SessionMessage | Exception
MessageStreams = tuple[MemoryObjectReceiveStream[Received], MemoryObjectSendStream[SessionMessage]]


class ChildRecord(Value):
    """A child and its owner with their identities, because pids are reused. An identity is None
    when the process has already ended."""

    pid: int
    began: str | None
    owner: int
    owner_began: str | None


class ChildRegistry:
    """The running children of a home's processes, one file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def record(self, pid: int) -> None:
        owner = os.getpid()
        child = ChildRecord(pid=pid, began=identity(pid), owner=owner, owner_began=identity(owner))
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self._folder / str(pid)).write_bytes(encode(child))

    def forget(self, pid: int) -> None:
        with contextlib.suppress(OSError):
            (self._folder / str(pid)).unlink(missing_ok=True)

    def kill_orphans(self) -> int:
        """Kill orphaned children; return their number."""
        killed = 0
        for file in sorted(self._folder.iterdir()) if self._folder.is_dir() else ():
            try:
                child = decode(ChildRecord, file.read_bytes())
            except (OSError, DecodeError):
                continue
            if child.owner_began and identity(child.owner) == child.owner_began:
                continue
            if child.began and identity(child.pid) == child.began:
                _signal(child.pid, signal.SIGKILL)
                killed += 1
            self.forget(child.pid)
        return killed


@asynccontextmanager
async def child_streams(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    log: Path,
    registry: ChildRegistry,
) -> AsyncIterator[MessageStreams]:
    """Start a child and yield its message streams; kill its process group at the end. Raise OSError
    when it cannot start."""
    with await asyncio.to_thread(_open_log, log) as errors:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=dict(env),
            cwd=cwd or None,
            start_new_session=True,
        )
    registry.record(process.pid)
    to_us, inward = anyio.create_memory_object_stream[Received](0)
    outward, from_us = anyio.create_memory_object_stream[SessionMessage](0)
    pumps = (
        asyncio.ensure_future(_read(process, to_us)),
        asyncio.ensure_future(_write(process, from_us, to_us)),
    )
    try:
        yield inward, outward
    finally:
        ending = asyncio.ensure_future(_end(process, registry))
        while not ending.done():
            # Cancellation does not skip the wait: a child must not outlive its owner.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(ending)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        for stream in (to_us, inward, outward, from_us):
            stream.close()


def _open_log(log: Path) -> BinaryIO:
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > _LOG_BYTES:
        log.replace(log.with_suffix(".log.1"))
    return log.open("ab")


async def _read(process: Process, to_us: MemoryObjectSendStream[Received]) -> None:
    assert process.stdout is not None
    rest = b""
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with to_us:
            while chunk := await process.stdout.read(_CHUNK):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in filter(bytes.strip, lines):
                    try:
                        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValueError as error:
                        await to_us.send(error)
                    else:
                        await to_us.send(SessionMessage(message))


async def _write(
    process: Process,
    from_us: MemoryObjectReceiveStream[SessionMessage],
    to_us: MemoryObjectSendStream[Received],
) -> None:
    assert process.stdin is not None
    try:
        async for item in from_us:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(text.encode() + b"\n")
            await process.stdin.drain()
    except OSError:
        # The child no longer reads, so no one should wait for its replies.
        to_us.close()


async def _end(process: Process, registry: ChildRegistry) -> None:
    """End the process. Close stdin first, so that a well-behaved server can exit."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    for wait, hint in ((QUIET_SECONDS, signal.SIGTERM), (TERM_SECONDS, signal.SIGKILL)):
        await _wait_for_exit(process, wait)
        if process.returncode is None:
            _signal(process.pid, hint)
    # Its children may still run in the same group.
    _signal(process.pid, signal.SIGKILL)
    await process.wait()
    registry.forget(process.pid)


async def _wait_for_exit(process: Process, seconds: float) -> None:
    """Wait until the process has exited, within a limit. `wait` would also wait for children that
    hold its pipes."""
    deadline = asyncio.get_running_loop().time() + seconds
    while process.returncode is None and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


READ_SECONDS = 300.0
Streams = AbstractAsyncContextManager[Any]


def streams_of(
    server: McpServer,
    *,
    variables: Mapping[str, str],
    log: Path,
    registry: ChildRegistry,
    auth: httpx2.Auth | None,
) -> Streams:
    """Return the streams to a server; raise Unreachable when the command does not exist."""
    if server.command:
        env = child_environment(server, variables)
        program = shutil.which(server.command, path=env.get("PATH", ""))
        if program is None and not Path(server.cwd, server.command).is_file():
            raise Unreachable(
                f"MCP server {server.name}: command {server.command!r} was not found; install it."
            )
        command = (program or server.command, *server.args)
        return child_streams(command, env=env, cwd=server.cwd, log=log, registry=registry)
    if server.transport == "sse":
        return sse_client(
            server.url,
            headers=server.headers,
            auth=auth,
            timeout=server.connect_timeout,
            httpx_client_factory=http_client_factory(server),
        )
    return _http_streams(server, auth)


@asynccontextmanager
async def _http_streams(server: McpServer, auth: httpx2.Auth | None) -> AsyncIterator[Any]:
    """Open Streamable HTTP with its own client."""
    timeout = httpx2.Timeout(server.connect_timeout, read=READ_SECONDS)
    make_client = http_client_factory(server)
    async with (
        make_client(headers=server.headers, timeout=timeout, auth=auth) as client,
        streamable_http_client(server.url, http_client=client) as streams,
    ):
        yield streams


def http_client_factory(server: McpServer) -> Any:
    """Return a function that creates clients with the TLS settings of the server."""
    verify = _tls_context(server)

    def make(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, verify=verify)

    return make


def _tls_context(server: McpServer) -> ssl.SSLContext | bool:
    """Return the TLS settings: trusted certificates and client certificate."""
    if server.ssl_verify is True and not server.client_cert:
        return True
    try:
        context = ssl.create_default_context()
        if isinstance(server.ssl_verify, str):
            context.load_verify_locations(str(Path(server.ssl_verify).expanduser()))
        elif not server.ssl_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if server.client_cert:
            cert, key, password = (*server.client_cert, "", "")[:3]
            context.load_cert_chain(
                Path(cert).expanduser(), Path(key).expanduser() if key else None, password or None
            )
    except OSError as error:
        raise ConfigError(
            f"The certificates of mcp_servers.{server.name} cannot be loaded: {error}."
        ) from error
    return context
