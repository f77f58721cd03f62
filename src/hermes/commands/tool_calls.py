"""Describes tool calls and their results for people."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

from hermes.codec.values import JsonObject, Value
from hermes.commands.formatting import one_line, short_path
from hermes.core.errors import UsageError
from hermes.core.messages import ToolCall, ToolResult
from hermes.core.tool_calls import NOT_RUN, UNKNOWN_OUTCOME
from hermes.core.tools import ToolDisplay
from hermes.tools.catalogue import declarations

IMAGE_TOOL = "image_generate"
MAX_INLINE_BYTES = 5 * 1024 * 1024


def image_of(result: ToolResult) -> str:
    """The path or URL of the image; "" when the result has none."""
    image = result.details.get("image") if result.name == IMAGE_TOOL and not result.failed else None
    return image if isinstance(image, str) else ""


def image_data_url(image: str) -> str:
    """A data URL of the image, or its own URL; "" for a file that is too large, missing or not an
    image."""
    if image.startswith(("http://", "https://")):
        return image
    try:
        with Path(image).open("rb") as file:
            data = file.read(MAX_INLINE_BYTES + 1)
        # Loaded with the first image: it needs the slash commands.
        from hermes.commands.image_files import image_kind

        media_type, _ = image_kind(image, data)
    except (OSError, UsageError):
        return ""
    if len(data) > MAX_INLINE_BYTES:
        return ""
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def image_part(image: str) -> JsonObject:
    """An image part in the chat format."""
    return {"type": "image_url", "image_url": {"url": image_data_url(image) or Path(image).name}}


LONGEST_REASON = 60


class CallDescription(Value):
    """`verb` is one short word, `detail` one line."""

    emoji: str
    verb: str
    detail: str


def describe_call(
    call: ToolCall, details: JsonObject | None = None, *, root: str = ""
) -> CallDescription:
    """Describe a call, with the details of its result once there is one. Paths are relative to
    `root`. A tool that `tool_call` uses is described as itself."""
    call = unwrap_call(call)
    declared = declarations().get(call.name)
    display = declared.display if declared else ToolDisplay()
    verb, shown = display.verb or call.name, _DETAILS.get(call.name)
    if shown is not None:
        found = shown(call, details or {}, root)
        verb, detail = found if isinstance(found, tuple) else (verb, found)
    elif display.detail:
        detail = display.fill(display.detail, call.arguments).strip()
    else:
        detail = next((value for value in call.arguments.values() if isinstance(value, str)), "")
    return CallDescription(emoji=display.icon, verb=verb, detail=one_line(detail))


def unwrap_call(call: ToolCall) -> ToolCall:
    """The call that `tool_call` makes, or the call itself."""
    while call.name == "tool_call" and _text(call, "name") != call.name:
        given = call.arguments.get("arguments")
        inner = given if isinstance(given, dict) else {}
        call = ToolCall(id=call.id, name=_text(call, "name"), arguments=inner)
    return call


def failure_reason(result: ToolResult) -> str:
    """The failure reason in a word or two."""
    details, text = result.details, result.text
    if details.get("timed_out"):
        return "timed out"
    if details.get("interrupted"):
        return "stopped"
    if code := details.get("exit_code"):
        return f"exit {code}"
    if text in NOT_RUN:
        return "skipped"
    if text == UNKNOWN_OUTCOME:
        return "outcome unknown"
    if result.denied:
        return "denied"
    return one_line(text.strip().partition("\n")[0], LONGEST_REASON) or "error"


# The detail of a call, or its verb and detail.
Shown = str | tuple[str, str]


def _terminal(call: ToolCall, details: JsonObject, root: str) -> Shown:
    command = _text(call, "command").strip()
    first, _, rest = command.partition("\n")
    more = rest.count("\n") + 1 if rest else 0
    tail = f" … (+{more} lines)" if more else ""
    ending = " &" if call.arguments.get("background") else ""
    return first + tail + ending


def _read(call: ToolCall, details: JsonObject, root: str) -> Shown:
    detail = short_path(_text(call, "path"), root)
    start, shown = details.get("start"), details.get("shown")
    if details.get("truncated") and start and shown:
        detail += f" (lines {start}-{start + shown - 1} of {details.get('total_lines')})"
    return detail


def _patch(call: ToolCall, details: JsonObject, root: str) -> Shown:
    keys = ("files_modified", "files_created", "files_deleted")
    files = [path for key in keys for path in details.get(key, ())]
    if len(files) > 1:
        what = f"{len(files)} files"
    else:
        what = short_path(str(details.get("path") or _text(call, "path")), root)
    added, removed = details.get("added", 0), details.get("removed", 0)
    return what + (f"  +{added} −{removed}" if added or removed else "")


def _search(call: ToolCall, details: JsonObject, root: str) -> Shown:
    in_names = call.arguments.get("target") == "files"
    detail = _text(call, "pattern")
    if glob := _text(call, "file_glob"):
        detail += f" ({glob})"
    if (where := short_path(_text(call, "path"), root)) not in ("", "."):
        detail += f" in {where}"
    return "find" if in_names else "grep", detail


def _todo(call: ToolCall, details: JsonObject, root: str) -> Shown:
    summary = details.get("summary") or {}
    total, done = summary.get("total", 0), summary.get("completed", 0)
    return f"{done} of {total} done" if total else ""


def _memory(call: ToolCall, details: JsonObject, root: str) -> Shown:
    action = _text(call, "action") or f"{len(call.arguments.get('operations') or ())} changes"
    words = _text(call, "content") or _text(call, "old_text")
    about = f"{action} {_text(call, 'target')}".strip()
    return f"{about}: {words}" if words else about


def _change_skill(call: ToolCall, details: JsonObject, root: str) -> Shown:
    skill = f"{_text(call, 'name')} {_text(call, 'file_path')}".strip()
    action = _text(call, "action").partition("_")[0]
    return ("create", skill) if action == "create" else f"{action} {skill}".strip()


# Details that need more than a template in the tool's declaration.
_DETAILS: dict[str, Callable[[ToolCall, JsonObject, str], Shown]] = {
    "memory": _memory,
    "patch": _patch,
    "read_file": _read,
    "search_files": _search,
    "session_search": lambda call, _, __: (
        _text(call, "query") or _text(call, "session_id") or "recent sessions"
    ),
    "skill_manage": _change_skill,
    "terminal": _terminal,
    "todo": _todo,
    "write_file": _patch,
}


def _text(call: ToolCall, name: str) -> str:
    """Arguments come from a model and may have any type."""
    value = call.arguments.get(name, "")
    return value if isinstance(value, str) else str(value)


EDIT_TOOLS = frozenset(("write_file", "patch"))
SHOWN_FILES = 3


class FailedEdits:
    """The edits of one turn."""

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._failed: dict[str, None] = {}
        self._any_made = False

    def note(self, call: ToolCall, result: ToolResult) -> None:
        if call.name not in EDIT_TOOLS:
            return
        self._any_made |= not result.failed
        if result.failed:
            self._failed[describe_call(call, root=self._root).detail or "a file"] = None

    def warning(self) -> str:
        """A warning when every edit failed, else empty."""
        if self._any_made or not self._failed:
            return ""
        named = list(self._failed)[:SHOWN_FILES]
        more = len(self._failed) - len(named)
        files = ", ".join(named) + (f" and {more} more" if more else "")
        return f"No file was changed: every edit failed ({files})."
