"""Repairs any conversation into one that every wire format accepts; valid ones stay identical."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

from hermes.codec.values import JsonValue, replace
from hermes.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
    user_says,
)

# An escaped control character; after an even number of backslashes.
_ESCAPED_CONTROL = re.compile(r"(?<!\\)((?:\\\\)*)\\u00[01][0-9a-f]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


def clean_text(text: str) -> str:
    """Return the text itself if it can be encoded. Otherwise join surrogate pairs and replace lone
    halves by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean_json(value: JsonValue) -> JsonValue:
    """Clean all strings of a JSON value; return the same object if nothing had to be replaced."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        items = [clean_json(item) for item in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    if isinstance(value, dict):
        pairs = [(clean_text(key), clean_json(item)) for key, item in value.items()]
        same = all(
            a is key and b is item for (a, b), (key, item) in zip(pairs, value.items(), strict=True)
        )
        return value if same else dict(pairs)
    return value


def ascii_json(encoded: bytes) -> bytes:
    """Return the same JSON in ASCII, with U+FFFD for control characters in strings: dropping them
    could leave a string empty."""
    text = _ESCAPED_CONTROL.sub(r"\1\\ufffd", encoded.decode("utf-8"))
    return _BEYOND_ASCII.sub(_escape, text).encode("ascii")


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


UNAVAILABLE = "[Result unavailable]"
EARLIER = "[Earlier messages are not shown.]"
CONTINUE = "Continue."

_MAX_ID = 40
_MAX_NAME = 64
_UNSAFE_CHARS = re.compile(r"[^A-Za-z0-9_-]")

Part = TypeVar("Part", bound=Text | Image | Reasoning)


class ConversationNormalizer:
    """Makes a valid sequence of messages with the same content; unchanged messages are the same
    objects. It keeps the state of a growing conversation, so that each message is checked once.
    `ids` are the call ids of the latest conversation."""

    def __init__(self) -> None:
        self._seen: tuple[Message, ...] = ()
        self._reset()

    def _reset(self) -> None:
        self.ids: set[str] = set()
        self._done: list[Message] = []
        self._open: _PendingCalls | None = None

    def normalize(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        known = len(self._seen)
        if messages[:known] != self._seen:
            self._reset()
            known = 0
        for message in messages[known:]:
            match message:
                case UserMessage():
                    self._add_user(message)
                case AssistantMessage():
                    self._add_assistant(message)
                case ToolMessage() if self._open is not None:
                    self._open.answer(message)
                    if len(self._open.answers) == len(self._open.call_ids):
                        self._close()
        self._seen = messages
        done = list(self._done)
        if self._open is not None:
            self._open.append_to(done)
        if not done:
            return (user_says(EARLIER),)
        if isinstance(done[-1], AssistantMessage):
            done.append(user_says(CONTINUE))
        return tuple(done)

    def _add_user(self, message: UserMessage) -> None:
        clean = [_clean_part(part) for part in message.parts]
        parts = tuple(part for part in clean if not isinstance(part, Text) or part.text.strip())
        if not parts:
            return
        if not _are_identical(message.parts, parts):
            message = UserMessage(parts=parts)
        if self._open is not None:
            self._open.users.append(message)
        else:
            _append(message, self._done)

    def _add_assistant(self, message: AssistantMessage) -> None:
        self._close()
        clean = (
            self._clean_call(part) if isinstance(part, ToolCall) else _clean_part(part)
            for part in message.parts
        )
        parts = tuple(part for part in clean if not isinstance(part, Text) or part.text.strip())
        if all(isinstance(part, Reasoning) for part in parts):
            return
        asked = [call.id for call in message.calls]
        if not _are_identical(message.parts, parts):
            message = AssistantMessage(parts=parts, stop=message.stop)
        if asked:
            self._open = _PendingCalls(message, asked)
        else:
            _append(message, self._done)

    def _close(self) -> None:
        if self._open is not None:
            self._open.append_to(self._done)
            self._open = None

    def _clean_call(self, call: ToolCall) -> ToolCall:
        id = fresh_id(call.id or f"call_{len(self.ids)}", self.ids)
        self.ids.add(id)
        name = _UNSAFE_CHARS.sub("_", call.name)[:_MAX_NAME] or "unknown"
        arguments = clean_json(call.arguments)
        if id == call.id and name == call.name and arguments is call.arguments:
            return call
        return ToolCall(id=id, name=name, arguments=arguments, broken=call.broken)


class _PendingCalls:
    """An assistant message whose calls wait for results, and the messages that arrived meanwhile.
    `call_ids` are the ids before they were cleaned."""

    def __init__(self, message: AssistantMessage, call_ids: list[str]) -> None:
        self.message = message
        self.call_ids = call_ids
        self.answers: dict[int, ToolResult] = {}
        self.messages: list[ToolMessage] = []
        self.users: list[UserMessage] = []

    def answer(self, message: ToolMessage) -> None:
        self.messages.append(message)
        calls = self.message.calls
        for result in message.results:
            for position, (asked, call) in enumerate(zip(self.call_ids, calls, strict=True)):
                if asked == result.call_id and position not in self.answers:
                    parts = tuple(_clean_part(part) for part in result.parts)
                    if asked != call.id or not _are_identical(parts, result.parts):
                        result = replace(result, call_id=call.id, parts=parts)
                    self.answers[position] = result
                    break

    def append_to(self, done: list[Message]) -> None:
        """Append the calls and their results. Missing results count as failed."""
        _append(self.message, done)
        lost = (Text(text=UNAVAILABLE),)
        results = tuple(
            self.answers.get(position)
            or ToolResult(call_id=call.id, name=call.name, parts=lost, failed=True)
            for position, call in enumerate(self.message.calls)
        )
        first = self.messages[0] if self.messages else None
        same = first is not None and _are_identical(first.results, results)
        done.append(first if first is not None and same else ToolMessage(results=results))
        for user in self.users:
            _append(user, done)


def call_ids(messages: Iterable[Message]) -> set[str]:
    return {call.id for m in messages if isinstance(m, AssistantMessage) for call in m.calls}


def fresh_id(wanted: str, taken: set[str]) -> str:
    """Return the wanted id in plain characters, with a number at the end if it is taken."""
    clean = _UNSAFE_CHARS.sub("_", wanted)[:_MAX_ID]
    # Counting from 1 would get slower with each call of a server that reuses one id.
    id, n = clean, len(taken)
    while id in taken:
        n += 1
        suffix = f"_{n}"
        id = clean[: _MAX_ID - len(suffix)] + suffix
    return id


def _append(message: UserMessage | AssistantMessage, done: list[Message]) -> None:
    """Append the message, or merge it into the last one if that has the same role."""
    if not done and isinstance(message, AssistantMessage):
        done.append(user_says(EARLIER))
    last = done[-1] if done else None
    if isinstance(last, UserMessage) and isinstance(message, UserMessage):
        *first, before = last.parts
        after, *rest = message.parts
        middle: tuple[Text | Image, ...] = (before, after)
        if isinstance(before, Text) and isinstance(after, Text):
            middle = (Text(text=f"{before.text}\n\n{after.text}"),)
        done[-1] = UserMessage(parts=(*first, *middle, *rest), origin=last.origin)
    elif isinstance(last, AssistantMessage) and isinstance(message, AssistantMessage):
        # Sealed reasoning is valid only before the text of its own reply.
        kept = Text(text=f"{last.text.rstrip()}\n\n")
        done[-1] = AssistantMessage(parts=(kept, *message.parts), stop=message.stop)
    else:
        done.append(message)


def _clean_part(part: Part) -> Part:
    if isinstance(part, Image):
        return part
    text = clean_text(part.text)
    if isinstance(part, Text):
        return part if text is part.text else replace(part, text=text)
    sealed = part.sealed if clean_json(part.sealed) is part.sealed else None
    if text is part.text and sealed is part.sealed:
        return part
    return replace(part, text=text, sealed=sealed)


def _are_identical(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
