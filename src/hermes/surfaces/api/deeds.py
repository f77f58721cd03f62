"""Tracks the tool calls of a turn and reports each start before its end."""

from __future__ import annotations

from collections.abc import Iterator

from hermes.codec.values import Value
from hermes.core.events import Event, ReplyAdded, ToolFinished, ToolStarted
from hermes.core.messages import ToolCall, ToolResult


class CallStarted(Value):
    call: ToolCall


class CallFinished(Value):
    call: ToolCall
    result: ToolResult
    seconds: float


class ToolCallTracker:
    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}
        self._begun: set[str] = set()

    def apply(self, event: Event) -> Iterator[CallStarted | CallFinished]:
        match event:
            case ReplyAdded(message=message):
                self._calls.update({call.id: call for call in message.calls})
            case ToolStarted(call_id=id) if id in self._calls and id not in self._begun:
                self._begun.add(id)
                yield CallStarted(call=self._calls[id])
            case ToolFinished(result=result, seconds=seconds):
                id = result.call_id
                call = self._calls.pop(id, None) or ToolCall(id=id, name=result.name)
                if id not in self._begun:
                    yield CallStarted(call=call)
                self._begun.discard(id)
                yield CallFinished(call=call, result=result, seconds=seconds)
            case _:
                return
