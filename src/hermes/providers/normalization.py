"""Repairs any conversation into one that every wire format accepts; valid ones stay identical."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
    """The text itself if it can be encoded. Otherwise surrogate pairs are joined and lone halves
    become U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean_json(value: JsonValue) -> JsonValue:
    """The same object if nothing had to be replaced."""
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
    """The same JSON in ASCII, with U+FFFD for control characters in strings: dropping them could
    leave a string empty."""
    text = _ESCAPED_CONTROL.sub(r"\1\\ufffd", encoded.decode("utf-8"))
    return _BEYOND_ASCII.sub(_escape, text).encode("ascii")


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
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

AssistantPart = Text | Reasoning | ToolCall


def normalize_messages(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """A valid sequence with the same content. Unchanged messages are the same objects."""
    return ConversationNormalizer().normalize(messages)


class ConversationNormalizer:
    """Keeps the state of a growing conversation, so that each message is checked once."""

    def __init__(self) -> None:
        self._seen: tuple[Message, ...] = ()
        self._repair = _Repair()

    def normalize(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        known = len(self._seen)
        if messages[:known] != self._seen:
            self._repair = _Repair()
            known = 0
        for message in messages[known:]:
            self._repair.add(message)
        self._seen = messages
        return self._repair.result()

    @property
    def ids(self) -> set[str]:
        """The call ids of the latest conversation."""
        return self._repair.ids


class _PendingCalls:
    """An assistant message whose calls wait for results, and the messages that arrived
    meanwhile."""

    def __init__(self, message: AssistantMessage, asked: Iterable[str]) -> None:
        self.message = message
        self.call_ids = list(asked)
        self.answers: dict[int, ToolResult] = {}
        self.messages: list[ToolMessage] = []
        self.users: list[UserMessage] = []

    def answer(self, message: ToolMessage) -> None:
        self.messages.append(message)
        calls = self.message.calls
        for result in message.results:
            for place, (asked, call) in enumerate(zip(self.call_ids, calls, strict=True)):
                if asked == result.call_id and place not in self.answers:
                    self.answers[place] = _clean_result(result, call)
                    break

    @property
    def answered(self) -> bool:
        return len(self.answers) == len(self.call_ids)

    def results(self) -> ToolMessage:
        calls = self.message.calls
        results = tuple(
            self.answers.get(n) or _missing_result(call) for n, call in enumerate(calls)
        )
        first = self.messages[0] if self.messages else None
        if first is not None and _are_identical(first.results, results):
            return first
        return ToolMessage(results=results)


class _Repair:
    def __init__(self) -> None:
        self.ids: set[str] = set()
        self._done: list[Message] = []
        self._open: _PendingCalls | None = None

    def add(self, message: Message) -> None:
        match message:
            case UserMessage():
                self._add_user(message)
            case AssistantMessage():
                self._add_assistant(message)
            case ToolMessage():
                self._add_results(message)

    def result(self) -> tuple[Message, ...]:
        done = list(self._done)
        if self._open is not None:
            _close(self._open, done)
        if not done:
            return (user_says(EARLIER),)
        if isinstance(done[-1], AssistantMessage):
            done.append(user_says(CONTINUE))
        return tuple(done)

    def _add_user(self, message: UserMessage) -> None:
        parts = _clean_parts(message.parts)
        if not parts:
            return
        clean = message if _are_identical(message.parts, parts) else UserMessage(parts=parts)
        if self._open is not None:
            self._open.users.append(clean)
        else:
            _append(clean, self._done)

    def _add_assistant(self, message: AssistantMessage) -> None:
        self._close()
        parts = tuple(self._clean_assistant_part(part) for part in message.parts)
        parts = tuple(part for part in parts if not isinstance(part, Text) or part.text.strip())
        if all(isinstance(part, Reasoning) for part in parts):
            return
        same = _are_identical(message.parts, parts)
        clean = message if same else AssistantMessage(parts=parts, stop=message.stop)
        if clean.calls:
            self._open = _PendingCalls(clean, (call.id for call in message.calls))
        else:
            _append(clean, self._done)

    def _add_results(self, message: ToolMessage) -> None:
        if self._open is None:
            return
        self._open.answer(message)
        if self._open.answered:
            self._close()

    def _close(self) -> None:
        if self._open is not None:
            _close(self._open, self._done)
            self._open = None

    def _clean_assistant_part(self, part: AssistantPart) -> AssistantPart:
        match part:
            case Text(text=text):
                clean = clean_text(text)
                return part if clean is text else Text(text=clean)
            case Reasoning():
                return _clean_reasoning(part)
            case ToolCall():
                return self._clean_call(part)

    def _clean_call(self, call: ToolCall) -> ToolCall:
        id = self._fresh_id(call.id)
        name = clean_name(call.name)
        arguments = clean_json(call.arguments)
        if id == call.id and name == call.name and arguments is call.arguments:
            return call
        return ToolCall(id=id, name=name, arguments=arguments, broken=call.broken)

    def _fresh_id(self, wanted: str) -> str:
        id = fresh_id(wanted or f"call_{len(self.ids)}", self.ids)
        self.ids.add(id)
        return id


def fresh_id(wanted: str, taken: set[str]) -> str:
    """The wanted id in plain characters, with a number at the end if it is taken."""
    clean = _UNSAFE_CHARS.sub("_", wanted)[:_MAX_ID]
    # Counting from 1 would get slower with each call of a server that reuses one id.
    id, n = clean, len(taken)
    while id in taken:
        n += 1
        suffix = f"_{n}"
        id = clean[: _MAX_ID - len(suffix)] + suffix
    return id


def clean_name(name: str) -> str:
    return _UNSAFE_CHARS.sub("_", name)[:_MAX_NAME] or "unknown"


def _close(pending: _PendingCalls, done: list[Message]) -> None:
    _append(pending.message, done)
    done.append(pending.results())
    for user in pending.users:
        _append(user, done)


def _append(message: UserMessage | AssistantMessage, done: list[Message]) -> None:
    """Appends the message, or merges it into the last one if that has the same role."""
    if not done and isinstance(message, AssistantMessage):
        done.append(user_says(EARLIER))
    last = done[-1] if done else None
    if isinstance(last, UserMessage) and isinstance(message, UserMessage):
        done[-1] = UserMessage(parts=_join_parts(last.parts, message.parts), origin=last.origin)
    elif isinstance(last, AssistantMessage) and isinstance(message, AssistantMessage):
        # Sealed reasoning is valid only before the text of its own reply.
        kept = Text(text=f"{last.text.rstrip()}\n\n")
        done[-1] = AssistantMessage(parts=(kept, *message.parts), stop=message.stop)
    else:
        done.append(message)


def _join_parts(
    first: tuple[Text | Image, ...], second: tuple[Text | Image, ...]
) -> tuple[Text | Image, ...]:
    before, after = first[-1], second[0]
    if isinstance(before, Text) and isinstance(after, Text):
        return (*first[:-1], Text(text=f"{before.text}\n\n{after.text}"), *second[1:])
    return (*first, *second)


def _clean_parts(parts: tuple[Text | Image, ...]) -> tuple[Text | Image, ...]:
    clean = (_clean_part(part) for part in parts)
    return tuple(part for part in clean if not isinstance(part, Text) or part.text.strip())


def _clean_part(part: Text | Image) -> Text | Image:
    if isinstance(part, Image):
        return part
    clean = clean_text(part.text)
    return part if clean is part.text else Text(text=clean)


def _clean_reasoning(part: Reasoning) -> Reasoning:
    text = clean_text(part.text)
    sealed = part.sealed if clean_json(part.sealed) is part.sealed else None
    if text is part.text and sealed is part.sealed:
        return part
    return Reasoning(text=text, sealed=sealed, issuer=part.issuer)


def _clean_result(result: ToolResult, call: ToolCall) -> ToolResult:
    parts = tuple(_clean_part(part) for part in result.parts)
    if result.call_id == call.id and _are_identical(parts, result.parts):
        return result
    return replace(result, call_id=call.id, parts=parts)


def _missing_result(call: ToolCall) -> ToolResult:
    parts = (Text(text=UNAVAILABLE),)
    return ToolResult(call_id=call.id, name=call.name, parts=parts, failed=True)


def _are_identical(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
