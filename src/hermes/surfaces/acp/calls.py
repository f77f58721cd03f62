"""The kind, title, locations and diff of a tool call in an editor."""

from __future__ import annotations

import hashlib
from pathlib import Path

from acp.helpers import ToolCallContentVariant, text_block, tool_content, tool_diff_content
from acp.schema import ToolCallLocation, ToolKind

from hermes.codec.values import JsonObject
from hermes.core.messages import ToolCall, ToolResult
from hermes.tools.catalogue import declarations

MAX_OUTPUT_CHARS = 20_000
MAX_DIFF_CHARS = 512 * 1024
TITLE = 80


def call_id(id: str) -> str:
    """The id of a tool call in protocol messages."""
    return f"tc-{hashlib.sha256(id.encode()).hexdigest()[:12]}"


def kind_of(name: str) -> ToolKind:
    declared = declarations().get(name)
    return declared.kind if declared else "other"


def title_of(call: ToolCall) -> str:
    declared = declarations().get(call.name)
    title = call.name
    if declared and declared.display.title:
        properties = declared.spec.parameters.get("properties", {})
        defaults = {name: each.get("default", "") for name, each in properties.items()}
        title = declared.display.fill(declared.display.title, {**defaults, **call.arguments})
    plain = " ".join(title.split())
    return plain if len(plain) <= TITLE else plain[: TITLE - 1] + "…"


def locations(call: ToolCall, cwd: str) -> list[ToolCallLocation]:
    path = _path(call.arguments)
    if not path:
        return []
    line = call.arguments.get("offset")
    at = str(Path(cwd, path))
    return [ToolCallLocation(path=at, line=line if isinstance(line, int) and line > 0 else None)]


def edit_diff(call: ToolCall, cwd: str) -> list[ToolCallContentVariant]:
    """The diff of an edit, as far as its arguments show it."""
    path = str(Path(cwd, _path(call.arguments)))
    match call.name, call.arguments:
        case "write_file", {"content": str() as new}:
            return [tool_diff_content(path, new, _text(path))]
        case "patch", {"old_string": str() as old, "new_string": str() as new}:
            return [tool_diff_content(path, new, old)]
        case "terminal", {"command": str() as command}:
            return [tool_content(text_block(f"$ {command}"))]
        case _:
            return []


def outcome(call: ToolCall | None, result: ToolResult) -> list[ToolCallContentVariant]:
    text = result.text
    if len(text) > MAX_OUTPUT_CHARS:
        half = MAX_OUTPUT_CHARS // 2
        text = f"{text[:half]}\n[… {len(text) - MAX_OUTPUT_CHARS} characters …]\n{text[-half:]}"
    shown: list[ToolCallContentVariant] = [tool_content(text_block(text))] if text else []
    if call is not None and call.name == "terminal":
        command = call.arguments.get("command", "")
        return [tool_content(text_block(f"$ {command}\n{text}"))]
    return shown


def _path(arguments: JsonObject) -> str:
    path = arguments.get("path", "")
    return path if isinstance(path, str) else ""


def _text(path: str) -> str | None:
    """The current text of the file; None for a new or binary file."""
    try:
        if Path(path).stat().st_size > MAX_DIFF_CHARS:
            return None
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeError):
        return None
