"""Converts conversations between messages and the OpenAI chat format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from hermes.codec.json import DecodeError, decode, encode_sorted
from hermes.codec.values import JsonObject, replace
from hermes.core.errors import UsageError
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
    user_says,
)


def messages_from_dicts(history: Sequence[JsonObject]) -> tuple[Message, ...]:
    """Convert user, assistant and tool entries. System entries are skipped, since a session has
    its own system prompt. Raise UsageError for an invalid entry."""
    converted: list[Message] = []
    for number, entry in enumerate(history):
        role = entry.get("role")
        if role == "system":
            continue
        if role == "user":
            converted.append(user_says(_content(entry)))
        elif role == "assistant":
            converted.append(_assistant_message(entry))
        elif role == "tool":
            _add_result(converted, entry)
        else:
            raise UsageError(f"Message {number} of the history has the unknown role {role!r}.")
    return tuple(converted)


def dicts_from_messages(messages: Sequence[Message]) -> list[JsonObject]:
    converted: list[JsonObject] = []
    for message in messages:
        match message:
            case AssistantMessage():
                entry: JsonObject = {"role": "assistant", "content": message.text or None}
                calls: list[JsonObject] = []
                for call in message.calls:
                    arguments = encode_sorted(call.arguments).decode()
                    function = {"name": call.name, "arguments": arguments}
                    calls.append({"id": call.id, "type": "function", "function": function})
                if calls:
                    entry["tool_calls"] = calls
                if message.reasoning:
                    entry["reasoning"] = message.reasoning
                entry["finish_reason"] = "tool_calls" if message.calls else "stop"
                if message.stop == "interrupted":
                    entry["finish_reason"] = message.stop
                converted.append(entry)
            case ToolMessage():
                for result in message.results:
                    entry = {"role": "tool", "tool_call_id": result.call_id}
                    converted.append(entry | {"name": result.name, "content": result.text})
            case UserMessage():
                converted.append({"role": "user", "content": message.text})
            case _:
                assert_never(message)
    return converted


def _assistant_message(entry: JsonObject) -> AssistantMessage:
    parts: list[Text | Reasoning | ToolCall] = []
    if entry.get("reasoning"):
        parts.append(Reasoning(text=str(entry["reasoning"])))
    if text := _content(entry):
        parts.append(Text(text=text))
    calls = [_call(each) for each in entry.get("tool_calls") or ()]
    if entry.get("finish_reason") == "interrupted" and not calls:
        return AssistantMessage(parts=tuple(parts), stop="interrupted")
    return AssistantMessage(parts=(*parts, *calls), stop="calls" if calls else "done")


def _call(raw: JsonObject) -> ToolCall:
    function = raw.get("function") or {}
    call = ToolCall(id=str(raw["id"]), name=str(function.get("name")))
    try:
        arguments = decode(dict[str, Any], function.get("arguments") or "{}")
    except DecodeError as error:
        return replace(call, broken=str(error))
    return replace(call, arguments=arguments)


def _add_result(converted: list[Message], entry: JsonObject) -> None:
    result = ToolResult(
        call_id=str(entry.get("tool_call_id", "")),
        name=str(entry.get("name") or entry.get("tool_name") or ""),
        parts=(Text(text=_content(entry)),),
    )
    if converted and isinstance(converted[-1], ToolMessage):
        converted[-1] = ToolMessage(results=(*converted[-1].results, result))
    else:
        converted.append(ToolMessage(results=(result,)))


def _content(entry: JsonObject) -> str:
    content = entry.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")
