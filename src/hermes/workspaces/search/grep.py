"""Search with GNU grep, given the files of our own walk."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator

from hermes.core.errors import ToolError
from hermes.core.ports import SearchQuery
from hermes.workspaces.search.dialects import for_grep
from hermes.workspaces.search.lines import MatchReader
from hermes.workspaces.search.pattern import Node, size, wide_size
from hermes.workspaces.search.programs import NameReader, batches, run_program
from hermes.workspaces.search.selection import Selection

# Each count is written out in full by grep, and its time grows with the square of the result.
MAX_SIZE = 1_000
MAX_WIDE_SIZE = 120

_ALWAYS = ("--extended-regexp", "--no-messages", "--color=never", "--null")
_LINES = ("--text", "--line-number", "--with-filename", "--no-group-separator")


class Grep:
    def __init__(self, program: str) -> None:
        self._program = program

    async def files(self, selection: Selection, names: NameReader, enough: asyncio.Event) -> None:
        await read_walk(selection, names, enough)

    async def candidates(
        self, pattern: Node, selection: Selection, *, most: int
    ) -> AsyncIterator[list[str]]:
        """Files with a matching line, in order, in batches."""
        if size(pattern) > MAX_SIZE or wide_size(pattern) > MAX_WIDE_SIZE:
            raise ToolError("The counts in this pattern are too much for grep.")
        walk = batches(selection.walk())
        enough = asyncio.Event()
        while batch := await asyncio.to_thread(_next, walk):
            names = NameReader(most=most, enough=enough)
            arguments = (*_ALWAYS, "-I", "--files-with-matches", _regexp(pattern), "--", *batch)
            await run_program(self._program, arguments, names.add, enough=enough)
            if names.names:
                yield names.names

    async def lines(
        self,
        pattern: Node,
        query: SearchQuery,
        paths: list[str],
        reader: MatchReader,
        enough: asyncio.Event,
    ) -> None:
        context = f"--context={query.context}"
        arguments = (*_ALWAYS, *_LINES, context, _regexp(pattern), "--", *paths)
        await run_program(self._program, arguments, reader.add, enough=enough)


def _next(walk: Iterator[list[str]]) -> list[str] | None:
    return next(walk, None)


def _regexp(pattern: Node) -> str:
    return f"--regexp={os.fsdecode(for_grep(pattern))}"


async def read_walk(selection: Selection, names: NameReader, enough: asyncio.Event) -> None:
    """The files of our own walk, some at a time, so that a search can be ended meanwhile."""
    walk = batches(selection.walk())
    while not enough.is_set() and (batch := await asyncio.to_thread(_next, walk)):
        names.add("\0".join((*batch, "")).encode())
