"""Runs a search program: found where it is installed, ended when enough has come."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator

from hermes.core.errors import ToolError
from hermes.workspaces.child import Child

# Room for the names of files in one call; the kernel's limit is far above.
ARGUMENT_BYTES = 100_000
COMPLAINT_BYTES = 4_000


async def run_program(
    program: str,
    arguments: tuple[str, ...],
    sink: Callable[[bytes], None],
    *,
    enough: asyncio.Event,
) -> None:
    """Until it ends or `enough` is set. Complaints about single files are not made; anything
    else that it says on its error output means that it cannot do this search: ToolError."""
    complaints = bytearray()

    def complain(data: bytes) -> None:
        complaints.extend(data[: COMPLAINT_BYTES - len(complaints)])

    try:
        env = {"LC_ALL": "C", "PATH": os.defpath}
        child = Child(program, (program, *arguments), env, sink, errors=complain)
    except OSError as error:
        raise ToolError(f"{program}: {error.strerror}") from error
    try:
        await child.wait(timeout=None, stop=enough)
    finally:
        if not child.ended.done():
            await child.end(grace_seconds=0)
        child.close()
    if complaints and not enough.is_set():
        raise ToolError(complaints.decode("utf-8", "replace").strip())


class NameReader:
    """Collects names that end in NUL."""

    def __init__(self, *, most: int, enough: asyncio.Event) -> None:
        self.names: list[str] = []
        self.cut = False
        self._most = most
        self._enough = enough
        self._held = b""

    def add(self, data: bytes) -> None:
        *names, self._held = (self._held + data).split(b"\0")
        self.names += map(os.fsdecode, names)
        if len(self.names) > self._most:
            del self.names[self._most :]
            self.cut = True
            self._enough.set()


def batches(paths: Iterable[str]) -> Iterator[list[str]]:
    """As many as fit into the arguments of one call."""
    batch: list[str] = []
    size = 0
    for path in paths:
        length = len(os.fsencode(path)) + 1
        if batch and size + length > ARGUMENT_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += length
    if batch:
        yield batch
