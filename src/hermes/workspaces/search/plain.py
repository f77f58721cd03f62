"""Searches with Python's `re` in a separate process, which can be killed when a pattern backtracks
without end."""

from __future__ import annotations

import asyncio
import sys

from hermes.codec.json import encode
from hermes.core.ports import SearchQuery
from hermes.workspaces.search.grep import read_walk
from hermes.workspaces.search.lines import MatchReader
from hermes.workspaces.search.programs import NameReader, run_program
from hermes.workspaces.search.reading import SearchTask
from hermes.workspaces.search.selection import Selection

_START = f"""import sys
sys.path[:] = sys.argv[2:]
from {SearchTask.__module__} import main
main(sys.argv[1])"""


class PythonSearch:
    async def files(self, selection: Selection, names: NameReader, enough: asyncio.Event) -> None:
        await read_walk(selection, names, enough)

    async def search(
        self, query: SearchQuery, line_bytes: int, reader: MatchReader, enough: asyncio.Event
    ) -> None:
        task = encode(SearchTask(query=query, line_bytes=line_bytes)).decode()
        arguments = ("-I", "-S", "-Wignore", "-c", _START, task, *filter(None, sys.path))
        await run_program(sys.executable, arguments, reader.add, enough=enough)
