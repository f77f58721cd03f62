"""Builds the message that replaces the older part of a conversation after compaction."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence

from hermes.codec.values import Value
from hermes.context.carried import FileSeen
from hermes.context.marks import BLOCK_BEGINS, BLOCK_ENDS
from hermes.context.pruning import elide
from hermes.context.room import TokenBudget, reduce_budget
from hermes.context.tokens import CHARS_PER_TOKEN, text_tokens

SEARCH_TOOL = "session_search"


class Carried(Value):
    """Content of the block. Numbers are record numbers. `request` is the current request unless
    it is still in view; `first` is the first message."""

    session_id: str
    recallable: bool
    last_number: int
    cwd: str = ""
    rules: tuple[tuple[int, str], ...] = ()
    wishes: tuple[tuple[int, str], ...] = ()
    summary: str = ""
    first: tuple[int, str] = (0, "")
    todos: tuple[str, ...] = ()
    files: tuple[FileSeen, ...] = ()
    names: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    request: tuple[tuple[int, str], ...] = ()


def fitting_block(carried: Carried, room: TokenBudget, tokens: int) -> str:
    """Builds the block within a token limit; rules and the request shrink last."""
    text = ""
    for percent in (100, 60, 30):
        text = block_text(carried, reduce_budget(room, percent))
        if text_tokens(text) <= tokens:
            break
    return text


def block_text(carried: Carried, room: TokenBudget) -> str:
    """Builds the block; truncated parts say how much is missing."""
    sections = (
        _section("Standing rules of the user, verbatim", _rules(carried, room)),
        _section("How it began, verbatim", _first(carried, room)),
        _section("Summary", carried.summary),
        _section("Open to-dos", _fit_lines(carried.todos, room.todos, "to-dos")),
        _section(
            "Files already read or written; do not read them again unless they changed",
            _format_files(carried, room),
        ),
        _section("Names in use", _fit_names(carried.names, room.names)),
        _section(
            "Tools found so far, for tool_call", _fit_lines(carried.tools, room.todos, "tools")
        ),
        _section("The request you are working on, verbatim", _request(carried, room)),
    )
    parts = (_heading(carried), *sections, BLOCK_ENDS)
    return "\n\n".join(part for part in parts if part)


def _heading(carried: Carried) -> str:
    text = f"{BLOCK_BEGINS} It is reference material, not a new request."
    if not carried.recallable:
        return text + "]"
    upto = f" up to {carried.last_number}" if carried.last_number else ""
    return (
        f"{text} Every message{upto} is stored verbatim. To look something up: "
        f'{SEARCH_TOOL}(query="…", session_id="{carried.session_id}"), with role_filter="tool" for '
        f'results; by number: {SEARCH_TOOL}(session_id="{carried.session_id}", '
        "around_message_id=N).]"
    )


def _section(title: str, text: str) -> str:
    return f"## {title}\n{text}" if text else ""


def _rules(carried: Carried, room: TokenBudget) -> str:
    """Lists rules, then wishes in the remaining space."""
    rules = _fit_newest([_rule(each) for each in carried.rules], room.rules, "older rules")
    left = (room.rules - text_tokens(rules)) // 2
    wishes = _fit_newest([_rule(each) for each in carried.wishes], left, "older wishes")
    return "\n".join(filter(None, (rules, wishes)))


def _rule(rule: tuple[int, str]) -> str:
    number, text = rule
    return f"- [{number}] {text}" if number else f"- {text}"


def _first(carried: Carried, room: TokenBudget) -> str:
    number, text = carried.first
    return elide(text, room.request * CHARS_PER_TOKEN // 4, number)


def _request(carried: Carried, room: TokenBudget) -> str:
    most = room.request * CHARS_PER_TOKEN // max(1, len(carried.request))
    return "\n\n".join(elide(text, most, number) for number, text in carried.request)


def _format_files(carried: Carried, room: TokenBudget) -> str:
    folders: dict[str, list[str]] = {}
    for seen in carried.files:
        path = seen.path
        if carried.cwd and path.startswith(carried.cwd.rstrip("/") + "/"):
            path = posixpath.relpath(path, carried.cwd)
        folder, name = posixpath.split(path)
        mark = f", #{seen.digest[:6]}" if seen.digest else ""
        folders.setdefault(folder or ".", []).append(f"{name} ({_line_range(seen.lines)}{mark})")
    lines = [f"{folder}/: {', '.join(names)}" for folder, names in folders.items()]
    if sum(map(text_tokens, lines)) > room.files:
        # Names alone tell which files need not be read again.
        lines = [
            f"{folder}/: {', '.join(name.partition(' (')[0] for name in names)}"
            for folder, names in folders.items()
        ]
    return _fit_newest(lines, room.files, "folders")


def _line_range(lines: str) -> str:
    """Shortens "1-80 of 80" to "80 lines"."""
    first, _, total = lines.partition(" of ")
    return f"{total} lines" if total and first == f"1-{total}" else lines


def _fit_names(names: Sequence[str], tokens: int) -> str:
    kept: list[str] = []
    for name in names:
        tokens -= text_tokens(name) + 1
        if tokens < 0:
            break
        kept.append(name)
    return ", ".join(kept)


def _fit_lines(lines: Iterable[str], tokens: int, what: str) -> str:
    kept: list[str] = []
    left = 0
    for line in lines:
        tokens -= text_tokens(line) + 1
        if tokens < 0:
            left += 1
        else:
            kept.append(line)
    return "\n".join((*kept, *((f"(and {left} more {what})",) if left else ())))


def _fit_newest(lines: Sequence[str], tokens: int, what: str) -> str:
    """Keeps order; drops the oldest lines that do not fit."""
    kept: list[str] = []
    for line in reversed(lines):
        tokens -= text_tokens(line) + 1
        if tokens < 0:
            break
        kept.append(line)
    left = len(lines) - len(kept)
    note = (f"({left} {what} not shown here)",) if left else ()
    return "\n".join((*note, *reversed(kept)))
