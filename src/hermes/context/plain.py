"""Converts conversations to plain dicts and back, for plugin context engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from hermes.codec.json import encode_sorted
from hermes.codec.values import JsonObject
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
    user_says,
)

OWN_WORDS = "hermes"


class InvalidConversation(ValueError):
    """A conversation that no model would accept."""


class PlainMessages:
    """Messages as dicts. Unchanged dicts map back to the original messages; new ones have the
    origin of Hermes."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.dicts: list[JsonObject] = []
        self._known: dict[bytes, UserMessage | AssistantMessage | ToolResult] = {}
        for message in messages:
            for as_dict, whole in _to_dicts(message):
                self.dicts.append(as_dict)
                self._known[encode_sorted(as_dict)] = whole

    def read(self, given: object) -> tuple[Message, ...]:
        """Raises Invalid unless the list starts with a user, pairs calls with results and keeps
        the last message."""
        if not isinstance(given, list) or not given:
            raise InvalidConversation("no messages were returned")
        found = list(self._messages(given))
        if not isinstance(found[0], UserMessage):
            raise InvalidConversation("it does not begin with a user message")
        for before, after in zip(found, (*found[1:], None), strict=True):
            _check_pair(before, after)
        if encode_sorted(given[-1]) != encode_sorted(self.dicts[-1]):
            raise InvalidConversation("the newest message is missing")
        return tuple(found)

    def _messages(self, given: list[Any]) -> Iterator[Message]:
        results: list[ToolResult] = []
        for each in given:
            part = self._one(each)
            if isinstance(part, ToolResult):
                results.append(part)
                continue
            if results:
                yield ToolMessage(results=tuple(results))
                results = []
            yield part
        if results:
            yield ToolMessage(results=tuple(results))

    def _one(self, each: Any) -> UserMessage | AssistantMessage | ToolResult:
        try:
            known = self._known.get(encode_sorted(each))
        except TypeError as error:
            raise InvalidConversation(f"a message is not JSON ({error})") from error
        if known is not None:
            return known
        match each:
            case {"role": "user", "content": str() as text}:
                return user_says(text, origin=OWN_WORDS)
            case {"role": "assistant", "content": str() as text}:
                calls = tuple(_call(call) for call in each.get("tool_calls") or ())
                words = (Text(text=text),) if text else ()
                return AssistantMessage(parts=(*words, *calls))
            case {"role": "tool", "content": str() as text, "tool_call_id": str() as call_id}:
                name = str(each.get("name", ""))
                return ToolResult(call_id=call_id, name=name, parts=(Text(text=text),))
            case _:
                raise InvalidConversation("a message has no known role or no content")


def _call(given: Any) -> ToolCall:
    match given:
        case {"id": str() as id, "name": str() as name, "arguments": dict() as arguments}:
            return ToolCall(id=id, name=name, arguments=arguments)
        case _:
            raise InvalidConversation("a call cannot be read")


def _check_pair(before: Message, after: Message | None) -> None:
    match before:
        case AssistantMessage(calls=calls) if calls:
            wanted = {call.id for call in calls}
            answered = after.results if isinstance(after, ToolMessage) else ()
            if {result.call_id for result in answered} != wanted:
                raise InvalidConversation("a call lacks its result")
        case AssistantMessage() | UserMessage():
            if isinstance(after, ToolMessage):
                raise InvalidConversation("a result lacks its call")
            if isinstance(before, AssistantMessage) and isinstance(after, AssistantMessage):
                raise InvalidConversation("two assistant messages in a row")
        case ToolMessage():
            return
        case _:
            assert_never(before)


def _to_dicts(
    message: Message,
) -> Iterator[tuple[JsonObject, UserMessage | AssistantMessage | ToolResult]]:
    match message:
        case UserMessage():
            yield {"role": "user", "content": message.text}, message
        case AssistantMessage():
            as_dict: JsonObject = {"role": "assistant", "content": message.text}
            if message.calls:
                as_dict["tool_calls"] = [
                    {"id": call.id, "name": call.name, "arguments": call.arguments}
                    for call in message.calls
                ]
            yield as_dict, message
        case ToolMessage():
            for result in message.results:
                answered: JsonObject = {"role": "tool", "content": result.text}
                yield answered | {"tool_call_id": result.call_id, "name": result.name}, result
        case _:
            assert_never(message)
