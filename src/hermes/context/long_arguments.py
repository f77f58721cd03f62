"""Shortens huge arguments of tool calls in requests. The journal keeps them whole."""

from __future__ import annotations

from hermes.codec.values import JsonObject, JsonValue, replace
from hermes.core.messages import AssistantMessage, Message, ToolCall

# A longer text in an argument is shortened. A file of this size is rarely written in one call.
MAX_ARGUMENT_CHARS = 32_000
_HEAD_CHARS, _TAIL_CHARS = 3_000, 1_000
# Arguments that are long because of many small values become one text.
_MAX_CALL_CHARS = 4 * MAX_ARGUMENT_CHARS
_PER_VALUE = 4


class ArgumentShortener:
    """Shortens the messages of one session. A message is shortened the first time it is sent, so
    that the beginning of later requests stays the same; each message is examined once."""

    def __init__(self) -> None:
        # By identity: comparing a message would cost as much as examining it.
        self._known: dict[int, tuple[Message, Message]] = {}

    def __call__(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        return tuple(self._shorten(m) if isinstance(m, AssistantMessage) else m for m in messages)

    def _shorten(self, message: AssistantMessage) -> Message:
        if not message.calls:
            return message
        known = self._known.get(id(message))
        if known is None or known[0] is not message:
            known = self._known[id(message)] = (message, shorten_message(message))
        return known[1]


def shorten_message(message: AssistantMessage) -> AssistantMessage:
    """Return the message with shortened arguments, or itself if none is too long."""
    parts = tuple(_short_call(p) if isinstance(p, ToolCall) else p for p in message.parts)
    is_same = all(a is b for a, b in zip(parts, message.parts, strict=True))
    return message if is_same else replace(message, parts=parts)


def shorten_arguments(arguments: JsonObject) -> JsonObject:
    """Return the arguments with shortened texts, or the same object if they are short enough."""
    size = _size(arguments)
    if size <= MAX_ARGUMENT_CHARS:
        return arguments
    short = {name: _short(value) for name, value in arguments.items()}
    if _size(short) <= _MAX_CALL_CHARS:
        return short
    return {name: _left_out(_size(value), "") for name, value in arguments.items()}


def _short_call(call: ToolCall) -> ToolCall:
    arguments = shorten_arguments(call.arguments)
    return call if arguments is call.arguments else replace(call, arguments=arguments)


def _short(value: JsonValue) -> JsonValue:
    if isinstance(value, str) and len(value) > MAX_ARGUMENT_CHARS:
        left = len(value) - _HEAD_CHARS - _TAIL_CHARS
        return _left_out(left, value[:_HEAD_CHARS], value[-_TAIL_CHARS:])
    if isinstance(value, list):
        return [_short(each) for each in value]
    if isinstance(value, dict):
        return {name: _short(each) for name, each in value.items()}
    return value


def _left_out(count: int, head: str, tail: str = "") -> str:
    return f"{head}\n[… {count} characters are not shown again; the call had all of them …]\n{tail}"


def _size(value: JsonValue) -> int:
    """The approximate characters of a value."""
    if isinstance(value, str):
        return len(value) + _PER_VALUE
    if isinstance(value, list):
        return _PER_VALUE + sum(map(_size, value))
    if isinstance(value, dict):
        return _PER_VALUE + sum(len(name) + _size(each) for name, each in value.items())
    return _PER_VALUE
