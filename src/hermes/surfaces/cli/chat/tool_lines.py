"""The rows that describe tool calls."""

from __future__ import annotations

from collections import deque

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.commands.formatting import format_duration, one_line, sanitize
from hermes.commands.tool_calls import CallDescription, failure_reason
from hermes.core.messages import ToolCall, ToolResult
from hermes.surfaces.cli.chat.cells import cells, cut, pad, wrap
from hermes.surfaces.cli.chat.diff_view import diff_rows
from hermes.surfaces.cli.chat.screen import Paint, Role

VERB_CELLS = 9
LEAST_CELLS = 8
DIFF_LINES = 40
NEW_LINES = 10
TASK_LINES = 30
OUTPUT_LINES = 400
KEPT_OUTPUTS = 50
RESULT_LINES = 20


def tool_line(
    described: CallDescription,
    result: ToolResult,
    seconds: float,
    paint: Paint,
    width: int,
    *,
    preview: int = 0,
) -> str:
    """`┊ emoji verb detail  duration`, in one row; `preview` limits the detail."""
    skin, tail = paint.skin, f"  {format_duration(seconds)}"
    emoji = skin.tool_emojis.get(described.verb, described.emoji)
    verb = described.verb if skin.words else f"{emoji} {pad(described.verb, VERB_CELLS)}"
    head = f"{skin.tool_prefix} {verb} "
    left = width - cells(head) - cells(tail)
    # A long failure reason leaves some room for the detail.
    reason = max(LEAST_CELLS, left - LEAST_CELLS - 4)
    why = f"  [{cut(failure_reason(result), reason)}]" if result.failed else ""
    room = max(LEAST_CELLS, left - cells(why))
    detail = cut(described.detail, min(room, preview) if preview else room)
    return paint(head + detail + tail, "dim") + paint(why, "error")


def picture_line(image: str, paint: Paint) -> str:
    """The full path of an image, which terminals make clickable."""
    sign = "image" if paint.skin.words else "🖼 "
    return f"{paint.skin.tool_prefix}   {sign} {paint(sanitize(image), 'accent')}"


def diff_lines(diff: str, paint: Paint, width: int, *, is_new: bool = False) -> list[str]:
    """The changed lines of a file, a few dozen at most; of a new file, the beginning."""
    most = NEW_LINES if is_new else DIFF_LINES
    return diff_rows(diff, paint, width, most=most, prefix=f"{paint.skin.tool_prefix}   ")


# The sign, the word and the role of each state of a task.
_TASKS: dict[str, tuple[str, str, Role]] = {
    "pending": ("☐", "to do:", "plain"),
    "in_progress": ("▸", "in progress:", "accent"),
    "completed": ("☑", "done:", "dim"),
    "cancelled": ("☒", "cancelled:", "dim"),
}


def todo_lines(details: JsonObject, paint: Paint, width: int) -> list[str]:
    """The task list of the model or the steps of a plan, one row each."""
    tasks = details.get("todos")
    bar, rows = paint(f"{paint.skin.tool_prefix}   ", "dim"), list[str]()
    for task in tasks[:TASK_LINES] if isinstance(tasks, list) else ():
        sign, word, role = _TASKS.get(str(task.get("status")), _TASKS["pending"])
        text = f"{word if paint.skin.words else sign} {one_line(str(task.get('content', '')))}"
        rows.append(bar + paint(cut(text, max(8, width - cells(bar))), role))
    if isinstance(tasks, list) and len(tasks) > TASK_LINES:
        rows.append(_result_row(f"… {len(tasks) - TASK_LINES} more", paint, width))
    return rows


class ToolOutputs:
    """The last tool outputs, which the user can look at one by one, newest first."""

    def __init__(self) -> None:
        self._kept: deque[tuple[CallDescription, str]] = deque(maxlen=KEPT_OUTPUTS)
        self._shown = 0

    def add(self, described: CallDescription, result: ToolResult) -> None:
        if result.text.strip():
            self._kept.append((described, result.text))
            self._shown = 0

    def next_rows(self, paint: Paint, width: int) -> list[str]:
        """The rows of the newest output that was not shown yet; empty if there is none."""
        if self._shown >= len(self._kept):
            return []
        self._shown += 1
        described, text = self._kept[-self._shown]
        lines = sanitize(text).rstrip("\n").split("\n")
        bar = paint(f"{paint.skin.tool_prefix}   ", "dim")
        title = cut(f"{described.verb} {described.detail}", max(8, width - cells(bar)))
        room = max(8, width - cells(bar))
        shown = [bar + row for line in lines[:OUTPUT_LINES] for row in wrap(line, room)]
        more = len(lines) - OUTPUT_LINES
        rest = [_result_row(f"… {more} more lines", paint, width)] if more > 0 else []
        return [bar + paint(title, "bold"), *shown, *rest]


def verbose_lines(call: ToolCall, result: ToolResult, paint: Paint, width: int) -> list[str]:
    """The arguments of a call and the beginning of its result."""
    lines = sanitize(result.text).rstrip("\n").split("\n")
    rows = [encode(call.arguments).decode(), *lines[:RESULT_LINES]]
    if len(lines) > RESULT_LINES:
        rows.append(f"… {len(lines) - RESULT_LINES} more lines")
    return [_result_row(sanitize(row), paint, width) for row in rows]


def _result_row(text: str, paint: Paint, width: int) -> str:
    bar = paint.skin.tool_prefix
    return paint(f"{bar}   {cut(text, max(8, width - 3 - cells(bar)))}", "dim")
