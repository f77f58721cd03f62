"""A server that is started as a child: its own process group, its own log, never left behind."""

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

from hermes.mcp.orphans import Births

QUIET_SECONDS = 0.5
TERM_SECONDS = 2.0
_CHUNK = 65_536
_LOG_BYTES = 2_000_000

Received = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Received], MemoryObjectSendStream[SessionMessage]]


class ChildPlace:
    """Where what belongs to a child is kept: its words on stderr, and that it lives."""

    def __init__(self, log: Path, births: Births) -> None:
        self.log = log
        self.births = births


@asynccontextmanager
async def child_streams(
    command: Sequence[str], *, env: Mapping[str, str], cwd: str, place: ChildPlace
) -> AsyncIterator[Streams]:
    """The messages from and to a new child, which is gone with its whole group at the end.
    OSError when it cannot be started."""
    process = await _started(command, env, cwd, place.log)
    place.births.note(process.pid)
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
            # Whoever is in a hurry waits all the same: a child must not outlive its owner.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(ending)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        for stream in (to_us, inward, outward, from_us):
            stream.close()


async def _started(command: Sequence[str], env: Mapping[str, str], cwd: str, log: Path) -> Process:
    with await asyncio.to_thread(_opened, log) as errors:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=dict(env),
            cwd=cwd or None,
            start_new_session=True,
        )


def _opened(log: Path) -> BinaryIO:
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
        # It does not listen any more, so nobody is to wait for its answers.
        to_us.close()


async def _end(process: Process, births: Births) -> None:
    """Its input is closed first, so that a polite server can leave by itself."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    for wait, hint in ((QUIET_SECONDS, signal.SIGTERM), (TERM_SECONDS, signal.SIGKILL)):
        await _left(process, wait)
        if process.returncode is None:
            _signal(process.pid, hint)
    # What it has started may still be there, in the same group.
    _signal(process.pid, signal.SIGKILL)
    await process.wait()
    births.forget(process.pid)


async def _left(process: Process, seconds: float) -> None:
    """Until it has gone, at most so long. `wait` would also wait for what it has started and
    that holds its pipes."""
    deadline = asyncio.get_running_loop().time() + seconds
    while process.returncode is None and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
