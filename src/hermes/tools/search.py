"""The search tool: lines by regular expression, files by name."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import PurePath
from typing import Annotated, Literal

from msgspec import Meta

from hermes.codec.values import JsonObject, replace
from hermes.core.concurrency import wait_for_first
from hermes.core.effects import ReadPath
from hermes.core.errors import ToolError
from hermes.core.messages import Text
from hermes.core.ports import SearchMatch, SearchQuery, SearchResult
from hermes.core.tools import ToolContext, ToolDisplay, ToolOutput, tool

FILES_IN_DETAILS = 50
LINE_CHARACTERS = 500
WARN_AT = 3
REFUSE_AT = 4
REPEATED = "[Same search, same result, for the third time. The fourth will be refused.]"

Page = tuple[int, int]


class SearchHistory:
    """Counts repetitions of the same search with the same result."""

    records_model_view = True

    def __init__(self) -> None:
        self._search: object = None
        self._found: SearchResult | None = None
        self._times = 0

    def count(self, search: object, found: SearchResult) -> int:
        """Return how many times in a row this search had this result."""
        same = search == self._search and found == self._found
        self._times = self._times + 1 if same else 1
        self._search, self._found = search, found
        return self._times


@tool(
    effects=lambda paths, arguments: (ReadPath(path=paths.resolve(arguments["path"])),),
    repeat="safe",
    toolset="file",
    kind="search",
    display=ToolDisplay(icon="🔎", verb="grep", detail="{pattern}", title="search: {pattern}"),
)
async def search_files(
    ctx: ToolContext,
    pattern: Annotated[str, "Regex for content, glob for files"],
    target: Literal["content", "files"] = "content",
    path: Annotated[str, "Folder or file"] = ".",
    file_glob: Annotated[str, "Only these files, e.g. *.py"] = "",
    limit: Annotated[int, Meta(ge=1)] = 50,
    offset: Annotated[int, Meta(ge=0)] = 0,
    output_mode: Literal["content", "files_only", "count"] = "content",
    context: Annotated[int, Meta(ge=0, le=20), "Lines around matches"] = 0,
) -> ToolOutput:
    """Search file contents, or find files by name, newest first. Skips ignored and binary files,
    and hidden ones unless the glob names them. Faster than grep or find."""
    if not pattern:
        raise ToolError("The pattern is empty.")
    query = SearchQuery(
        pattern=pattern,
        root=ctx.workspace.resolve(path or "."),
        target=target,
        glob=file_glob,
        context=context if output_mode == "content" else 0,
        hidden=_names_hidden(file_glob) or (target == "files" and _names_hidden(pattern)),
    )
    found = await _until_stopped(ctx, query)
    times = ctx.service(SearchHistory).count((query, output_mode, limit, offset), found)
    if times >= REFUSE_AT:
        raise ToolError(
            f"This search was made {times} times with the same result. "
            "Use what you have, or search for something else."
        )
    output = _format_result(found, query, output_mode, (offset, limit), ctx.workspace.cwd)
    if times == WARN_AT:
        return replace(output, parts=(*output.parts, Text(text=f"\n{REPEATED}")))
    return output


def _names_hidden(glob: str) -> bool:
    """Whether a glob such as `.github/*.yml` asks for hidden files."""
    return any(
        part.startswith(".") and part not in (".", "..")
        for part in glob.lstrip("!").replace("{", "/").replace(",", "/").split("/")
    )


async def _until_stopped(ctx: ToolContext, query: SearchQuery) -> SearchResult:
    searching = asyncio.ensure_future(ctx.workspace.search(query))
    try:
        if await wait_for_first(searching, timeout=None, stop=ctx.stop) == "ended":
            return searching.result()
    finally:
        searching.cancel()
        await asyncio.wait((searching,))
    raise ToolError("The search was interrupted.")


def _format_result(
    found: SearchResult, query: SearchQuery, mode: str, page: Page, cwd: str
) -> ToolOutput:
    offset, limit = page
    counts = Counter(match.path for match in found.matches if not match.is_context)
    if query.target == "files" or mode == "files_only":
        files = found.files if query.target == "files" else tuple(counts)
        chosen_files = files[offset : offset + limit]
        body = [_short(path, cwd) for path in chosen_files]
        return _output(body, chosen_files, len(files), "files", found.cut, page)
    if mode == "count":
        shown = list(counts.items())[offset : offset + limit]
        body = [f"{_short(path, cwd)}: {count}" for path, count in shown]
        output = _output(body, list(counts), len(counts), "files", found.cut, page)
        return replace(output, details={**output.details, "total_count": counts.total()})
    chosen, total = _page(found.matches, page)
    body = []
    for path, matches in groupby(chosen, key=lambda match: match.path):
        body.append(_short(path, cwd))
        for match in matches:
            text = match.text
            if len(text) > LINE_CHARACTERS:
                text = f"{text[:LINE_CHARACTERS]}…"
            body.append(f"{match.line}{'-' if match.is_context else ':'} {text}")
    shown_files = list(dict.fromkeys(match.path for match in chosen))
    return _output(body, shown_files, total, "matches", found.cut, page)


def _page(matches: Sequence[SearchMatch], page: Page) -> tuple[list[SearchMatch], int]:
    """Return the matches of a page with their context, and the total number."""
    offset, limit = page
    chosen: list[SearchMatch] = []
    before: list[SearchMatch] = []
    number = 0
    for match in matches:
        inside = offset <= number - 1 < offset + limit
        if not match.is_context:
            number += 1
            inside = offset < number <= offset + limit
            chosen += [*before, match] if inside else []
            before = []
        elif inside and chosen and _follows(chosen[-1], match):
            chosen.append(match)
        else:
            before = [*before, match] if before and _follows(before[-1], match) else [match]
    return chosen, number


def _follows(before: SearchMatch, match: SearchMatch) -> bool:
    return before.path == match.path and before.line + 1 == match.line


def _output(
    body: list[str], files: Sequence[str], total: int, what: str, cut: bool, page: Page
) -> ToolOutput:
    offset, limit = page
    shown = max(0, min(limit, total - offset))
    more = total > offset + shown
    many = f"{total}{'+' if cut else ''} {what}"
    note = ""
    if not total:
        note = "Nothing found."
    elif more or offset:
        note = f"[{many}; showing {offset + 1}-{offset + shown}"
        note += f"; continue with offset={offset + shown}]" if more else "]"
    elif cut:
        note = f"[{many}; the search was cut short]"
    details: JsonObject = {
        "total_count": total,
        "files": list(files[:FILES_IN_DETAILS]),
        "truncated": more or cut,
    }
    return ToolOutput.text("\n".join(filter(None, (*body, note))), details=details)


def _short(path: str, cwd: str) -> str:
    pure = PurePath(path)
    return str(pure.relative_to(cwd)) if pure.is_relative_to(cwd) else path
