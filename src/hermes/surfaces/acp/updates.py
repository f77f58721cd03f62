"""Converts session events into protocol updates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from acp.helpers import (
    SessionUpdate,
    plan_entry,
    start_tool_call,
    text_block,
    tool_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
)
from acp.schema import PlanEntryStatus, SessionInfoUpdate

from hermes.core.events import (
    Event,
    ReplyAdded,
    Titled,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from hermes.core.messages import ToolCall, ToolResult
from hermes.core.prompt import Notice, ReasoningDelta, Restarted, TextDelta
from hermes.surfaces.acp.calls import (
    MAX_OUTPUT_CHARS,
    call_id,
    edit_diff,
    kind_of,
    locations,
    outcome,
    title_of,
)

PLAN: dict[str, PlanEntryStatus] = {
    "pending": "pending",
    "in_progress": "in_progress",
    "completed": "completed",
    "cancelled": "completed",
}


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
            case ToolStarted(call_id=id):
                yield update_tool_call(call_id(id), status="in_progress")
            case ToolProgress(call_id=id, text=text):
                yield self._progress(id, text)
            case ToolFinished(result=result):
                yield from self._finish_call(result)
            case Titled(title=title):
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

    def _progress(self, id: str, text: str) -> SessionUpdate:
        shown = (self._output.get(id, "") + text)[-MAX_OUTPUT_CHARS:]
        self._output[id] = shown
        return update_tool_call(call_id(id), content=[tool_content(text_block(shown))])

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
        if result.name == "todo" and not result.failed:
            yield update_plan(
                plan_entry(str(item["content"]), status=PLAN[str(item["status"])])
                for item in cast(list[dict[str, Any]], result.details.get("todos", []))
            )
