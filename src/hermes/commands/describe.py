"""A tool call in the words of people: what was done to what, and why it failed."""

from __future__ import annotations

from collections.abc import Callable

from hermes.codec.values import JsonObject, Value
from hermes.commands.paths import near_path
from hermes.commands.visible import one_line
from hermes.core.executor import NOT_RUN, UNKNOWN_OUTCOME
from hermes.core.messages import ToolCall, ToolResult

LONGEST_REASON = 60


class Deed(Value):
    """`verb` is one short word, `detail` one line of any length."""

    emoji: str
    verb: str
    detail: str


def describe(call: ToolCall, details: JsonObject | None = None, *, root: str = "") -> Deed:
    """The call, with what its result added to it once there is one. Paths are told from `root`."""
    teller = _TELLERS.get(call.name, _any)
    told = teller(call, details or {}, root)
    return Deed(emoji=told.emoji, verb=told.verb, detail=one_line(told.detail))


def failure(result: ToolResult) -> str:
    """Why a call failed, in a word or two."""
    details, text = result.details, result.text
    if details.get("timed_out"):
        return "timed out"
    if details.get("interrupted"):
        return "stopped"
    if code := details.get("exit_code"):
        return f"exit {code}"
    if text == NOT_RUN:
        return "skipped"
    if text == UNKNOWN_OUTCOME:
        return "outcome unknown"
    if result.denied:
        return "denied"
    return one_line(text.strip().partition("\n")[0], LONGEST_REASON) or "error"


Teller = Callable[[ToolCall, JsonObject, str], Deed]


def _terminal(call: ToolCall, details: JsonObject, root: str) -> Deed:
    command = _text(call, "command").strip()
    first, _, rest = command.partition("\n")
    more = rest.count("\n") + 1 if rest else 0
    tail = f" … (+{more} lines)" if more else ""
    ending = " &" if call.arguments.get("background") else ""
    return Deed(emoji="💻", verb="$", detail=first + tail + ending)


def _process(call: ToolCall, details: JsonObject, root: str) -> Deed:
    words = f"{_text(call, 'action')} {_text(call, 'session_id')}"
    return Deed(emoji="🧩", verb="proc", detail=words.strip())


def _read(call: ToolCall, details: JsonObject, root: str) -> Deed:
    detail = near_path(_text(call, "path"), root)
    start, shown = details.get("start"), details.get("shown")
    if details.get("truncated") and start and shown:
        detail += f" (lines {start}-{start + shown - 1} of {details.get('total_lines')})"
    return Deed(emoji="📖", verb="read", detail=detail)


def _write(call: ToolCall, details: JsonObject, root: str) -> Deed:
    detail = near_path(_text(call, "path"), root) + _extent(details)
    return Deed(emoji="📝", verb="write", detail=detail)


def _patch(call: ToolCall, details: JsonObject, root: str) -> Deed:
    keys = ("files_modified", "files_created", "files_deleted")
    files = [path for key in keys for path in details.get(key, ())]
    if len(files) > 1:
        what = f"{len(files)} files"
    else:
        what = near_path(str(details.get("path") or _text(call, "path")), root)
    return Deed(emoji="🔧", verb="patch", detail=what + _extent(details))


def _search(call: ToolCall, details: JsonObject, root: str) -> Deed:
    in_names = call.arguments.get("target") == "files"
    detail = _text(call, "pattern")
    if glob := _text(call, "file_glob"):
        detail += f" ({glob})"
    if (where := near_path(_text(call, "path"), root)) not in ("", "."):
        detail += f" in {where}"
    return Deed(emoji="🔎", verb="find" if in_names else "grep", detail=detail)


def _todo(call: ToolCall, details: JsonObject, root: str) -> Deed:
    summary = details.get("summary") or {}
    total, done = summary.get("total", 0), summary.get("completed", 0)
    return Deed(emoji="📋", verb="plan", detail=f"{done} of {total} done" if total else "")


def _clarify(call: ToolCall, details: JsonObject, root: str) -> Deed:
    return Deed(emoji="❓", verb="ask", detail=_text(call, "question"))


def _draw(call: ToolCall, details: JsonObject, root: str) -> Deed:
    return Deed(emoji="🎨", verb="draw", detail=_text(call, "prompt"))


def _memory(call: ToolCall, details: JsonObject, root: str) -> Deed:
    deed = _text(call, "action") or f"{len(call.arguments.get('operations') or ())} changes"
    words = _text(call, "content") or _text(call, "old_text")
    about = f"{deed} {_text(call, 'target')}".strip()
    return Deed(emoji="🧠", verb="memory", detail=f"{about}: {words}" if words else about)


def _recall(call: ToolCall, details: JsonObject, root: str) -> Deed:
    detail = _text(call, "query") or _text(call, "session_id") or "recent sessions"
    return Deed(emoji="🔍", verb="recall", detail=detail)


def _skills(call: ToolCall, details: JsonObject, root: str) -> Deed:
    return Deed(emoji="📚", verb="skills", detail=_text(call, "category"))


def _skill(call: ToolCall, details: JsonObject, root: str) -> Deed:
    detail = f"{_text(call, 'name')} {_text(call, 'file_path')}".strip()
    return Deed(emoji="📚", verb="skill", detail=detail)


def _change_skill(call: ToolCall, details: JsonObject, root: str) -> Deed:
    told = _skill(call, details, root)
    action = _text(call, "action").partition("_")[0]
    if action == "create":
        return Deed(emoji=told.emoji, verb="create", detail=told.detail)
    return Deed(emoji=told.emoji, verb="skill", detail=f"{action} {told.detail}".strip())


def _hidden_tool(call: ToolCall, details: JsonObject, root: str) -> Deed:
    """A tool that was found by a search is told as itself."""
    name, arguments = _text(call, "name"), call.arguments.get("arguments")
    inner = ToolCall(
        id=call.id, name=name, arguments=arguments if isinstance(arguments, dict) else {}
    )
    return _any(inner, details, root) if name == call.name else describe(inner, details, root=root)


def _any(call: ToolCall, details: JsonObject, root: str) -> Deed:
    words = next((value for value in call.arguments.values() if isinstance(value, str)), "")
    return Deed(emoji="⚡", verb=call.name, detail=words)


_TELLERS: dict[str, Teller] = {
    "clarify": _clarify,
    "image_generate": _draw,
    "memory": _memory,
    "patch": _patch,
    "process": _process,
    "read_file": _read,
    "search_files": _search,
    "session_search": _recall,
    "skill_manage": _change_skill,
    "skill_view": _skill,
    "skills_list": _skills,
    "terminal": _terminal,
    "todo": _todo,
    "tool_call": _hidden_tool,
    "write_file": _write,
}


def _text(call: ToolCall, name: str) -> str:
    """Arguments come from a model, so any of them may be of any kind."""
    value = call.arguments.get(name, "")
    return value if isinstance(value, str) else str(value)


def _extent(details: JsonObject) -> str:
    added, removed = details.get("added", 0), details.get("removed", 0)
    return f"  +{added} −{removed}" if added or removed else ""
