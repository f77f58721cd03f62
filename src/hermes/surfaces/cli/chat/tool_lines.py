"""The rows that describe tool calls."""

from __future__ import annotations

from hermes.codec.json import encode
from hermes.commands.formatting import format_duration, sanitize
from hermes.commands.tool_calls import CallDescription, failure_reason
from hermes.core.messages import ToolCall, ToolResult
from hermes.surfaces.cli.chat.cells import cells, cut, pad
from hermes.surfaces.cli.chat.screen import Paint, Role

VERB_CELLS = 9
LEAST_CELLS = 8
DIFF_LINES = 40
RESULT_LINES = 20


def tool_line(
    deed: CallDescription,
    result: ToolResult,
    seconds: float,
    paint: Paint,
    width: int,
    *,
    preview: int = 0,
) -> str:
    """`┊ emoji verb detail  duration`, in one row; `preview` limits the detail."""
    head, tail = _head(deed, paint), f"  {format_duration(seconds)}"
    left = width - cells(head) - cells(tail)
    # A long failure reason leaves some room for the detail.
    reason = max(LEAST_CELLS, left - LEAST_CELLS - 4)
    why = f"  [{cut(failure_reason(result), reason)}]" if result.failed else ""
    room = max(LEAST_CELLS, left - cells(why))
    detail = cut(deed.detail, min(room, preview) if preview else room)
    return paint(head + detail + tail, "dim") + paint(why, "error")


def picture_line(image: str, paint: Paint) -> str:
    """The full path of an image, which terminals make clickable."""
    sign = "image" if paint.skin.words else "🖼 "
    return f"{paint.skin.tool_prefix}   {sign} {paint(sanitize(image), 'accent')}"


def diff_lines(diff: str, paint: Paint, width: int) -> list[str]:
    """The changed lines of a file, a few dozen at most."""
    lines = [line for line in sanitize(diff).rstrip("\n").split("\n") if not _is_file_name(line)]
    bar = paint.skin.tool_prefix
    shown = [f"{bar}   {cut(line, max(8, width - 3 - cells(bar)))}" for line in lines[:DIFF_LINES]]
    rows = [paint(row, _role(line)) for row, line in zip(shown, lines, strict=False)]
    if len(lines) > DIFF_LINES:
        rows.append(paint(f"{bar}   … {len(lines) - DIFF_LINES} more lines", "dim"))
    return rows


def verbose_lines(call: ToolCall, result: ToolResult, paint: Paint, width: int) -> list[str]:
    """The arguments of a call and the beginning of its result."""
    lines = sanitize(result.text).rstrip("\n").split("\n")
    rows = [encode(call.arguments).decode(), *lines[:RESULT_LINES]]
    if len(lines) > RESULT_LINES:
        rows.append(f"… {len(lines) - RESULT_LINES} more lines")
    bar = paint.skin.tool_prefix
    return [
        paint(f"{bar}   {cut(sanitize(row), max(8, width - 3 - cells(bar)))}", "dim")
        for row in rows
    ]


def _head(deed: CallDescription, paint: Paint) -> str:
    skin = paint.skin
    if skin.words:
        return f"{skin.tool_prefix} {deed.verb} "
    emoji = skin.tool_emojis.get(deed.verb, deed.emoji)
    return f"{skin.tool_prefix} {emoji} {pad(deed.verb, VERB_CELLS)} "


def _is_file_name(line: str) -> bool:
    return line.startswith(("--- ", "+++ "))


def _role(line: str) -> Role:
    if line.startswith("+"):
        return "added"
    if line.startswith("-"):
        return "removed"
    return "accent" if line.startswith("@@") else "dim"
