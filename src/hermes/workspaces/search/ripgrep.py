"""Searches with ripgrep, which walks the folders itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from hermes.core.ports import SearchQuery
from hermes.workspaces.search.lines import MatchReader
from hermes.workspaces.search.pattern import match_before_cr
from hermes.workspaces.search.programs import NameReader, batches, run_program
from hermes.workspaces.search.selection import Selection

# It must not skip anything that the selection takes: rules of parent folders, other ignore files
# and user settings are off. `Selection` filters what is listed too much.
_WALK = (
    "--no-config",
    "--no-messages",
    "--color=never",
    "--null",
    "--no-require-git",
    "--no-ignore-parent",
    "--no-ignore-global",
    "--no-ignore-exclude",
    "--no-ignore-dot",
)
_LINES = (
    "--no-config",
    "--no-messages",
    "--color=never",
    "--threads=1",
    "--null",
    "--text",
    "--encoding=none",
    "--line-number",
    "--with-filename",
    "--no-heading",
    "--no-context-separator",
)


class RipgrepSearch:
    def __init__(self, program: str) -> None:
        self._program = program

    async def files(self, selection: Selection, names: NameReader, enough: asyncio.Event) -> None:
        arguments = (*_WALK, *_glob_arguments(selection), "--files", "--", selection.root)
        await run_program(self._program, arguments, names.add, enough=enough)
        names.names = await asyncio.to_thread(_filter_selected, selection, names.names)

    async def candidates(
        self, pattern: str, selection: Selection, *, most: int
    ) -> AsyncIterator[list[str]]:
        """Yield files with a matching line, in order, in batches."""
        enough = asyncio.Event()
        names = NameReader(most=most, enough=enough)
        arguments = (
            *_WALK,
            *_glob_arguments(selection),
            "--encoding=none",
            "--files-with-matches",
            f"--regexp={match_before_cr(pattern)}",
            "--",
            selection.root,
        )
        await run_program(self._program, arguments, names.add, enough=enough)
        taken = await asyncio.to_thread(_filter_selected, selection, names.names)
        for batch in batches(sorted(taken, key=_folder_order)):
            yield batch

    async def lines(
        self,
        pattern: str,
        query: SearchQuery,
        paths: list[str],
        reader: MatchReader,
        enough: asyncio.Event,
    ) -> None:
        arguments = (
            *_LINES,
            f"--context={query.context}",
            f"--regexp={match_before_cr(pattern)}",
            "--",
            *paths,
        )
        await run_program(self._program, arguments, reader.add, enough=enough)


def _filter_selected(selection: Selection, names: list[str]) -> list[str]:
    return [name for name in names if selection.includes(name)]


def _folder_order(path: str) -> list[bytes]:
    """Sort like `Selection.walk`."""
    return path.encode().split(b"/")


def _glob_arguments(selection: Selection) -> list[str]:
    arguments = ["--hidden"] if selection.hidden else []
    # A glob without folders means the same to both, and makes ripgrep faster.
    for glob in selection.globs:
        arguments += [f"--glob={name}" for name in glob.names]
        if glob.names:
            break
    return [*arguments, "--glob=!.git"]
