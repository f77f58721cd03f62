"""Searches local files with the best engine that is installed."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from hermes.core.errors import ToolError
from hermes.core.ports import SearchQuery, SearchResult
from hermes.workspaces.files import find_program
from hermes.workspaces.search.engines import (
    EngineName,
    GrepSearch,
    MatchReader,
    NameReader,
    PythonSearch,
    RipgrepSearch,
    SearchLimits,
)
from hermes.workspaces.search.selection import Selection, is_text
from hermes.workspaces.search.worker import check_pattern

log = logging.getLogger(__name__)

Engine = GrepSearch | PythonSearch


class LocalSearch:
    """Finds lines and files. When an engine fails, the next one tries. All engines give the same
    answers in the same order for the expressions that they share."""

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        limits: SearchLimits | None = None,
        engine: EngineName | None = None,
    ) -> None:
        self._search_path = env.get("PATH", os.defpath)
        self._wanted = engine
        self._limits = limits or SearchLimits()
        self._engines: list[Engine] | None = None

    async def find(self, query: SearchQuery) -> SearchResult:
        if not Path(query.root).exists():  # noqa: ASYNC240
            raise ToolError(f"{query.root} does not exist. Check the path.")
        if self._engines is None:
            self._engines = await asyncio.to_thread(_find_engines, self._search_path, self._wanted)
        if query.target == "files":
            return await self._find_files(query)
        check_pattern(query.pattern)
        return await self._find_lines(query)

    async def _find_lines(self, query: SearchQuery) -> SearchResult:
        selection = Selection(query)
        limits = self._limits
        why = ""
        for engine in self._engines or ():
            reader = MatchReader(most=limits.matches, line_bytes=limits.line_bytes)
            cut = False
            try:
                async with asyncio.timeout(limits.seconds):
                    await self._read_lines(engine, query, selection, reader)
            except TimeoutError:
                cut = True
            except ToolError as error:
                # Each engine has features of its own, such as look-around in grep.
                why = str(error)
                continue
            return SearchResult(matches=tuple(reader.matches), cut=cut or reader.full)
        raise ToolError(f"Invalid regex {query.pattern!r}: {why}.")

    async def _read_lines(
        self, engine: Engine, query: SearchQuery, selection: Selection, reader: MatchReader
    ) -> None:
        enough = reader.enough
        if isinstance(engine, PythonSearch):
            await engine.search(query, self._limits.line_bytes, reader, enough)
            return
        async for batch in engine.candidates(query, selection, most=self._limits.candidates):
            texts = await asyncio.to_thread(lambda paths: [*filter(is_text, paths)], batch)
            if texts:
                await engine.lines(query, texts, reader, enough)
            if enough.is_set():
                return

    async def _find_files(self, query: SearchQuery) -> SearchResult:
        selection, limits = Selection(query), self._limits
        for engine in self._engines or ():
            enough = asyncio.Event()
            names = NameReader(most=limits.candidates, enough=enough)
            try:
                async with asyncio.timeout(limits.seconds):
                    await engine.files(selection, names, enough)
            except TimeoutError:
                names.cut = True
            except ToolError as error:
                log.warning("search engine failed", extra={"why": str(error)})
                continue
            files = await asyncio.to_thread(_newest_first, names.names)
            cut = names.cut or len(files) > limits.files
            return SearchResult(files=tuple(files[: limits.files]), cut=cut)
        raise ToolError("No search program works on this machine.")


def _newest_first(names: list[str]) -> list[str]:
    times = dict.fromkeys(names, 0)
    for name in names:
        with suppress(OSError):
            times[name] = os.lstat(name).st_mtime_ns
    return sorted(names, key=lambda name: (-times[name], name))


def _find_engines(search_path: str, wanted: EngineName | None) -> list[Engine]:
    engines: list[Engine] = []
    if wanted in (None, "ripgrep") and (program := find_program("rg", search_path)):
        engines.append(RipgrepSearch(program))
    if wanted in (None, "grep") and (program := find_program("grep", search_path)):
        # Other greps lack the options used here.
        with suppress(OSError, subprocess.TimeoutExpired):
            asked = (program, "--version")
            done = subprocess.run(asked, capture_output=True, timeout=5, check=False)
            engines += [GrepSearch(program)] if b"GNU" in done.stdout else []
    if wanted in (None, "python"):
        engines.append(PythonSearch())
    return engines
