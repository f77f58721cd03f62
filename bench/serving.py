"""A model server in a process of its own, so that its CPU is not counted as ours."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step


@contextmanager
def served(steps: list[Step] | Callable[[Request], Step], *, loop: bool = False) -> Iterator[str]:
    """The address of a server that follows the script."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        asyncio.run(_serve(steps, loop, writer))
        os._exit(0)
    os.close(writer)
    try:
        with os.fdopen(reader) as pipe:
            yield pipe.readline().strip()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


async def _serve(steps: list[Step] | Callable[[Request], Step], loop: bool, writer: int) -> None:
    async with ScriptedServer(steps, loop=loop, strict=False, keep=1) as server:
        os.write(writer, f"{server.url}\n".encode())
        await asyncio.Event().wait()
