"""Runs a search program and stops it as soon as it has found enough."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator

from hermes.core.errors import ToolError
from hermes.workspaces.child import Child

# File names per call; the limit of the kernel is far higher.
ARGUMENT_BYTES = 100_000
ERROR_BYTES = 4_000


async def run_program(
    program: str,
    arguments: tuple[str, ...],
    sink: Callable[[bytes], None],
    *,
    enough: asyncio.Event,
) -> None:
    """Run until it ends or `enough` is set. The programs are told not to report unreadable files,
    so any error output means that this search failed: ToolError."""
    output = bytearray()

    def add_error(data: bytes) -> None:
        output.extend(data[: ERROR_BYTES - len(output)])

    try:
        env = {"LC_ALL": "C.UTF-8", "PATH": os.defpath}
        child = Child(program, (program, *arguments), env, sink, errors=add_error)
    except OSError as error:
        raise ToolError(f"{program}: {error.strerror}") from error
    try:
        await child.wait(timeout=None, stop=enough)
    finally:
        if not child.ended.done():
            await child.end(grace_seconds=0)
        child.close()
    if output and not enough.is_set():
        raise ToolError(_summarize(output.decode("utf-8", "replace"), program))


def _summarize(output: str, program: str) -> str:
    """Return the line that names the error; ripgrep prints the pattern before it."""
    lines = output.strip().splitlines()
    named = [line for line in lines if line.startswith("error: ")]
    first = named[0].removeprefix("error: ") if named else lines[0]
    return first.removeprefix(f"{program}: ").removeprefix("grep: ")


class NameReader:
    """Collects file names that end in NUL."""

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
    """Split paths so that each batch fits into the arguments of one call."""
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
