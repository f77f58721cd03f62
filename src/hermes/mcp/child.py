"""Runs a server as a child process in its own process group, with its own log."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from hermes.mcp.orphans import ChildRegistry

QUIET_SECONDS = 0.5
TERM_SECONDS = 2.0
_CHUNK = 65_536
_LOG_BYTES = 2_000_000

Received = SessionMessage | Exception
MessageStreams = tuple[MemoryObjectReceiveStream[Received], MemoryObjectSendStream[SessionMessage]]


class ChildFiles:
    """Log file and process records of a child."""

    def __init__(self, log: Path, births: ChildRegistry) -> None:
        self.log = log
        self.births = births


@asynccontextmanager
async def child_streams(
    command: Sequence[str], *, env: Mapping[str, str], cwd: str, place: ChildFiles
) -> AsyncIterator[MessageStreams]:
    """Starts a child and yields its message streams; kills its process group at the end. OSError
    when it cannot start."""
    process = await _start(command, env, cwd, place.log)
    place.births.record(process.pid)
    to_us, inward = anyio.create_memory_object_stream[Received](0)
    outward, from_us = anyio.create_memory_object_stream[SessionMessage](0)
    pumps = (
        asyncio.ensure_future(_read(process, to_us)),
        asyncio.ensure_future(_write(process, from_us, to_us)),
    )
    try:
        yield inward, outward
    finally:
        ending = asyncio.ensure_future(_end(process, place.births))
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(ending)
        while not ending.done():
            # Cancellation does not skip the wait: a child must not outlive its owner.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(ending)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        for stream in (to_us, inward, outward, from_us):
            stream.close()


async def _start(command: Sequence[str], env: Mapping[str, str], cwd: str, log: Path) -> Process:
    with await asyncio.to_thread(_open_log, log) as errors:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=dict(env),
            cwd=cwd or None,
            start_new_session=True,
        )


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
                for line in lines:
                    if line.strip():
                        await to_us.send(_message(line))


def _message(line: bytes) -> Received:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


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


async def _end(process: Process, births: ChildRegistry) -> None:
    """Closes stdin first, so that a well-behaved server can exit."""
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
    births.forget(process.pid)


async def _wait_for_exit(process: Process, seconds: float) -> None:
    """Waits until the process has exited, within a limit. `wait` would also wait for children
    that hold its pipes."""
    deadline = asyncio.get_running_loop().time() + seconds
    while process.returncode is None and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
