"""Converts session events, tool calls and history into protocol updates."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from acp.helpers import (
    SessionUpdate,
    ToolCallContentVariant,
    plan_entry,
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
    update_user_message_text,
)
from acp.schema import PlanEntryStatus, SessionInfoUpdate, ToolCallLocation, ToolKind

from hermes.codec.values import JsonObject
from hermes.core.events import (
    Event,
    ReplyAdded,
    TitleChanged,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from hermes.core.prompt import Notice, ReasoningDelta, Restarted, TextDelta
from hermes.tools.catalogue import declarations

MAX_OUTPUT_CHARS = 20_000
MAX_DIFF_CHARS = 512 * 1024
TITLE = 80
PLAN: dict[str, PlanEntryStatus] = {"cancelled": "completed"}


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
    if call is not None and call.name == "terminal":
        text = f"$ {call.arguments.get('command', '')}\n{text}"
    return [tool_content(text_block(text))] if text else []


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


class UpdateEncoder:
    """Tracks running tool calls; one per session."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._calls: dict[str, ToolCall] = {}
        self._output: dict[str, str] = {}

    def call(self, id: str) -> ToolCall | None:
        return self._calls.get(id)

    def encode(self, event: Event) -> Iterator[SessionUpdate]:
        match event:
            case TextDelta(text=text) if text:
                yield update_agent_message_text(text)
            case ReasoningDelta(text=text) if text:
                yield update_agent_thought_text(text)
            case Notice(text=text):
                yield update_agent_thought_text(f"{text}\n")
            case Restarted():
                yield update_agent_message_text("\n\n")
            case ReplyAdded(message=message):
                for call in message.calls:
                    yield self.start_call(call)
            case ToolStarted(call_id=id) if id in self._calls:
                yield update_tool_call(call_id(id), status="in_progress")
            case ToolProgress(details=details) if "todos" in details:
                yield _plan_update(details)
            case ToolProgress(call_id=id, text=text):
                shown = (self._output.get(id, "") + text)[-MAX_OUTPUT_CHARS:]
                self._output[id] = shown
                yield update_tool_call(call_id(id), content=[tool_content(text_block(shown))])
            case ToolFinished(result=result):
                yield from self._finish_call(result)
            case TitleChanged(title=title):
                yield SessionInfoUpdate(session_update="session_info_update", title=title)
            case _:
                return

    def start_call(self, call: ToolCall) -> SessionUpdate:
        self._calls[call.id] = call
        return start_tool_call(
            call_id(call.id),
            title_of(call),
            kind=kind_of(call.name),
            status="pending",
            content=edit_diff(call, self._cwd),
            locations=locations(call, self._cwd),
            raw_input=call.arguments,
        )

    def _finish_call(self, result: ToolResult) -> Iterator[SessionUpdate]:
        call = self._calls.pop(result.call_id, None)
        self._output.pop(result.call_id, None)
        # The diff shown at the start stays, unless the edit failed.
        is_edit = call is not None and kind_of(call.name) == "edit" and not result.failed
        yield update_tool_call(
            call_id(result.call_id),
            status="failed" if result.failed else "completed",
            content=None if is_edit else outcome(call, result),
            raw_output=result.details or None,
        )
        if result.name in ("plan", "todo") and not result.failed:
            yield _plan_update(result.details)


def _plan_update(details: JsonObject) -> SessionUpdate:
    """The task list of the model, or the steps of a plan."""
    return update_plan(
        plan_entry(item["content"], status=PLAN.get(item["status"], item["status"]))
        for item in cast(list[dict[str, Any]], details.get("todos", []))
    )


def history_updates(
    messages: Iterable[Message], encoder: UpdateEncoder, redact: Callable[[str], str]
) -> Iterator[SessionUpdate]:
    for message in messages:
        match message:
            case UserMessage():
                yield update_user_message_text(redact(message.text))
            case AssistantMessage(parts=parts):
                for part in parts:
                    match part:
                        case Text(text=text) if text:
                            yield update_agent_message_text(text)
                        case Reasoning(text=text) if text:
                            yield update_agent_thought_text(text)
                        case ToolCall():
                            yield encoder.start_call(part)
                        case _:
                            pass
            case ToolMessage(results=results):
                for result in results:
                    yield from encoder.encode(ToolFinished(result=result))
