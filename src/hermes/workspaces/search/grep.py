"""Searches with GNU grep in the files that our own walk selects."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator

from hermes.core.ports import SearchQuery
from hermes.workspaces.search.lines import MatchReader
from hermes.workspaces.search.pattern import match_before_cr
from hermes.workspaces.search.programs import NameReader, batches, run_program
from hermes.workspaces.search.selection import Selection

# Characters, digits and word boundaries are those of Unicode, as in the other engines.
UNICODE = "(*UTF)(*UCP)"
OPTIONS = (
    "--perl-regexp",
    "--no-messages",
    "--color=never",
    "--null",
    "--text",
    "--line-number",
    "--with-filename",
    "--no-group-separator",
)


class GrepSearch:
    def __init__(self, program: str) -> None:
        self._program = program

    async def files(self, selection: Selection, names: NameReader, enough: asyncio.Event) -> None:
        await read_walk(selection, names, enough)

    async def candidates(
        self, pattern: str, selection: Selection, *, most: int
    ) -> AsyncIterator[list[str]]:
        """All selected files, in order, in batches."""
        yield [os.devnull]  # so that an invalid pattern fails even where there are no files
        walk = batches(selection.walk())
        while batch := await asyncio.to_thread(_next, walk):
            yield batch

    async def lines(
        self,
        pattern: str,
        query: SearchQuery,
        paths: list[str],
        reader: MatchReader,
        enough: asyncio.Event,
    ) -> None:
        context = f"--context={query.context}"
        arguments = (*OPTIONS, context, grep_regexp(pattern), "--", *paths)
        await run_program(self._program, arguments, reader.add, enough=enough)


def grep_regexp(pattern: str) -> str:
    return f"--regexp={UNICODE}{match_before_cr(pattern)}"


def _next(walk: Iterator[list[str]]) -> list[str] | None:
    return next(walk, None)


async def read_walk(selection: Selection, names: NameReader, enough: asyncio.Event) -> None:
    """List the selected files, a batch at a time, so that a search can be stopped in between."""
    walk = batches(selection.walk())
    while not enough.is_set() and (batch := await asyncio.to_thread(_next, walk)):
        names.add("\0".join((*batch, "")).encode())
