"""Conversations as plain dicts and back, for context engines that others have written."""

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


class Invalid(ValueError):
    """A list that no model could be sent, with the reason."""


class PlainMessages:
    """Some messages as dicts. What comes back unchanged becomes what it was, with all that a dict
    does not tell; words that are new are nobody's."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.dicts: list[JsonObject] = []
        self._known: dict[bytes, UserMessage | AssistantMessage | ToolResult] = {}
        for message in messages:
            for told, whole in _told(message):
                self.dicts.append(told)
                self._known[encode_sorted(told)] = whole

    def read(self, given: object) -> tuple[Message, ...]:
        """Invalid unless it is a conversation of the same kind: it begins with a user, every call
        has its result right behind it, and it ends as before."""
        if not isinstance(given, list) or not given:
            raise Invalid("no messages came back")
        found = list(self._messages(given))
        if not isinstance(found[0], UserMessage):
            raise Invalid("it does not begin with a user")
        for before, after in zip(found, (*found[1:], None), strict=True):
            _check_pair(before, after)
        if encode_sorted(given[-1]) != encode_sorted(self.dicts[-1]):
            raise Invalid("the newest message is gone")
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
            raise Invalid(f"a message is no JSON ({error})") from error
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
                raise Invalid("a message has no known role or no content")


def _call(given: Any) -> ToolCall:
    match given:
        case {"id": str() as id, "name": str() as name, "arguments": dict() as arguments}:
            return ToolCall(id=id, name=name, arguments=arguments)
        case _:
            raise Invalid("a call cannot be read")


def _check_pair(before: Message, after: Message | None) -> None:
    match before:
        case AssistantMessage(calls=calls) if calls:
            wanted = {call.id for call in calls}
            answered = after.results if isinstance(after, ToolMessage) else ()
            if {result.call_id for result in answered} != wanted:
                raise Invalid("a call and its result were parted")
        case AssistantMessage() | UserMessage():
            if isinstance(after, ToolMessage):
                raise Invalid("a result has lost its call")
            if isinstance(before, AssistantMessage) and isinstance(after, AssistantMessage):
                raise Invalid("two assistants in a row")
        case ToolMessage():
            return
        case _:
            assert_never(before)


def _told(
    message: Message,
) -> Iterator[tuple[JsonObject, UserMessage | AssistantMessage | ToolResult]]:
    match message:
        case UserMessage():
            yield {"role": "user", "content": message.text}, message
        case AssistantMessage():
            told: JsonObject = {"role": "assistant", "content": message.text}
            if message.calls:
                told["tool_calls"] = [
                    {"id": call.id, "name": call.name, "arguments": call.arguments}
                    for call in message.calls
                ]
            yield told, message
        case ToolMessage():
            for result in message.results:
                answered: JsonObject = {"role": "tool", "content": result.text}
                yield answered | {"tool_call_id": result.call_id, "name": result.name}, result
        case _:
            assert_never(message)
