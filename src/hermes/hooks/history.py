"""Converts a conversation to plain dicts for hooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from hermes.codec.values import JsonObject
from hermes.core.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage


def history(messages: Iterable[Message]) -> list[JsonObject]:
    """Returns dicts with `role` and `content`; assistants have `tool_calls`, each tool result
    has its `tool_call_id`."""
    found: list[JsonObject] = []
    for message in messages:
        match message:
            case UserMessage():
                found.append({"role": "user", "content": message.text})
            case AssistantMessage():
                said: JsonObject = {"role": "assistant", "content": message.text}
                if message.calls:
                    said["tool_calls"] = [_call(call) for call in message.calls]
                found.append(said)
            case ToolMessage():
                for result in message.results:
                    answered: JsonObject = {"role": "tool", "content": result.text}
                    found.append(answered | {"tool_call_id": result.call_id, "name": result.name})
            case _:
                assert_never(message)
    return found


def _call(call: ToolCall) -> JsonObject:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}
