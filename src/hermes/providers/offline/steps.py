"""Steps: generators that request tool calls, receive their results and return an answer.

Nothing is stored between replies. Each reply runs the steps from their start and feeds them the
results in the transcript, so a turn continues after a crash.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import NamedTuple

from hermes.codec.values import JsonObject
from hermes.core.messages import ToolResult

MAX_LINES = 60
MAX_LINE_LENGTH = 300
# Lines in brackets that the terminal tool adds after the output.
_NOTE = re.compile(r"\[[^\W\d_][^\n]*\]")

Slots = Mapping[str, str]


class CallRequest(NamedTuple):
    name: str
    arguments: JsonObject


Steps = Generator[CallRequest, ToolResult, str]
Action = Callable[[Slots], Steps]


class StepFailed(Exception):
    """Ends the request with this answer; later steps are not carried out."""


def call(name: str, **arguments: object) -> Generator[CallRequest, ToolResult, ToolResult]:
    """Request one call. Raise StepFailed with the tool's own explanation if it fails."""
    result = yield CallRequest(name, arguments)
    if result.failed:
        raise StepFailed(result.text.strip() or f"`{name}` failed.")
    return result


def run(script: str, *, accept: Sequence[int] = (0,)) -> Generator[CallRequest, ToolResult, str]:
    """Run a command and return its output. Raise StepFailed for other exit codes."""
    result = yield CallRequest("terminal", {"command": script})
    code = result.details.get("exit_code")
    if code in accept or (code is None and not result.failed):
        return output(result)
    if code is None or result.denied:
        raise StepFailed(result.text.strip() or "The command did not run.")
    raise StepFailed(f"{inline(script)} failed (exit {code}).\n\n{block(output(result))}")


def output(result: ToolResult) -> str:
    """Return a command's output without the notes of the tool."""
    lines = result.text.rstrip("\n").split("\n")
    while lines and _NOTE.fullmatch(lines[-1].strip()):
        lines.pop()
    return "\n".join(lines)


def quote(path: str) -> str:
    """Quote a path as one shell word. A leading ~ keeps its meaning, a leading dash loses it."""
    if path == "~" or path.startswith("~/"):
        return "~" + (f"/{shlex.quote(path[2:])}" if path[2:] else path[1:])
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def inline(text: str) -> str:
    """Format text as inline code, also if it contains backticks."""
    clean = " ".join(_cut(text).split()) or " "
    ticks = "``" if "`" in clean else "`"
    return f"{ticks} {clean} {ticks}" if "`" in clean else f"`{clean}`"


def block(text: str, *, name: str = "", limit: int = MAX_LINES) -> str:
    """Put text in a code fence; lines beyond the limit are counted."""
    lines = text.splitlines()
    shown = [_cut(line) for line in lines[:limit]]
    fence = "```"
    while any(fence in line for line in shown):
        fence += "`"
    body = "\n".join([f"{fence}{name}", *shown, fence])
    return body if len(lines) <= limit else f"{body}\n\n… and {len(lines) - limit} more lines."


def bullets(items: Sequence[str]) -> str:
    lines = [f"- {inline(item)}" for item in items[:MAX_LINES]]
    if len(items) > MAX_LINES:
        lines.append(f"- … and {len(items) - MAX_LINES} more")
    return "\n".join(lines)


def folder_label(slots: Slots) -> str:
    """Return the folder of a request, for display."""
    path = slots.get("folder") or slots.get("directory")
    return inline(path) if path else "this folder"


def plural(count: int, noun: str) -> str:
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}es" if noun.endswith("ch") else f"{count} {noun}s"


def format_size(size: int) -> str:
    if size < 1000:
        return plural(size, "byte")
    amount, unit = size / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if amount >= 1000:
            amount, unit = amount / 1000, larger
    return f"{amount:.1f} {unit}"


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE_LENGTH else line[: MAX_LINE_LENGTH - 1] + "…"
