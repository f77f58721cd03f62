"""Completes `@` references."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from hermes.commands.amounts import format_count
from hermes.commands.registry import CommandContext, Suggestion
from hermes.context.session_references import complete_path

REFERENCE_KINDS = {
    "file:": "a file, or lines of it: @file:path:10-25",
    "folder:": "what is in a folder",
    "diff": "what git says has changed",
    "staged": "what is staged",
    "git:": "the last commits: @git:3",
    "url:": "a page",
}
_UNFINISHED = re.compile(r"(?:^|(?<=[\s(\[{]))@(?P<kind>file:|folder:)?(?P<rest>[^\s@]*)$")


async def references_like(here: CommandContext, line: str) -> Sequence[Suggestion]:
    match = _UNFINISHED.search(line)
    if match is None:
        return ()
    kind, rest = match["kind"] or "", match["rest"]
    suggestions = []
    if not kind:
        suggestions = [
            Suggestion(text=name, words=words, replaces=len(rest))
            for name, words in REFERENCE_KINDS.items()
            if name.startswith(rest)
        ]
        if suggestions or not rest:
            return suggestions
    folder = rest.rpartition("/")[0]
    for info in await complete_path(here.session, rest):
        if kind == "folder:" and info.kind != "folder":
            continue
        name = posixpath.join(folder, posixpath.basename(info.path))
        is_folder = info.kind == "folder"
        shown = name + "/" if is_folder else name
        suggestions.append(
            Suggestion(
                text=shown if kind else f"file:{shown}",
                words="" if is_folder else f"{format_count(info.size)} bytes",
                replaces=len(rest),
            )
        )
    return suggestions
