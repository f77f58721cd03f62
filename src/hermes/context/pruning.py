"""Shortens messages without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import assert_never

from hermes.codec.tokens import CHARS_PER_TOKEN, estimate_tokens
from hermes.codec.values import JsonObject, JsonValue, replace
from hermes.context.budget import messages_tokens
from hermes.core.events import Compacted
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
)
from hermes.core.transcript import Transcript

ARGUMENT_CHARS = 200
_SHORT_RESULT = 160
_FAILURE_CHARS = 240
_MAIN_CHARS = 80
_MAIN = ("path", "command", "pattern", "query", "url", "name", "action")
_SPOKEN_CHARS = 2_400
PICTURE = "[an image was shown here]"

Number = Callable[[Message | ToolResult], int]


def prune(messages: Sequence[Message], number: Number, *, user_chars: int) -> tuple[Message, ...]:
    """Cut long parts; calls stay paired with results. User text is kept up to `user_chars`.
    `number` returns the record number of an original message."""
    calls: dict[str, ToolCall] = {}
    kept: list[Message] = []
    for message in messages:
        match message:
            case UserMessage():
                kept.append(_user(message, number(message), user_chars))
            case AssistantMessage():
                calls = {call.id: call for call in message.calls}
                kept.append(_assistant(message, number(message)))
            case ToolMessage():
                results = (
                    result_line(result, calls.get(result.call_id), number(result))
                    for result in message.results
                )
                kept.append(ToolMessage(results=tuple(results)))
            case _:
                assert_never(message)
    return tuple(kept)


def result_line(result: ToolResult, call: ToolCall | None, number: int) -> ToolResult:
    """Replace a long result with one line that says what it was and where it is."""
    text = result.text
    images = any(isinstance(part, Image) for part in result.parts)
    if len(text) <= _SHORT_RESULT and not images:
        return replace(result, details={}) if result.details else result
    line = f"[{describe_result(result, call)}{record_note(number)}]"
    if result.failed:
        line += "\n" + truncate(text, _FAILURE_CHARS)
    return replace(result, parts=(Text(text=line),), details={})


def describe_result(result: ToolResult, call: ToolCall | None) -> str:
    """Describe a call and its outcome in a few words."""
    text, details = result.text, result.details
    named = [result.name, main_argument(call.arguments) if call else ""]
    facts = [f"exit code {details['exit_code']}" if "exit_code" in details else ""]
    facts += ["failed" if result.failed else "", f"{text.count(chr(10)) + 1} lines"]
    persisted = details.get("persisted")
    facts.append(f"whole in {persisted}" if persisted else f"{len(text)} characters")
    return f"{' '.join(filter(None, named))}: {', '.join(filter(None, facts))}"


def main_argument(arguments: JsonObject) -> str:
    for name in _MAIN:
        value = arguments.get(name)
        if isinstance(value, str) and value.strip():
            return truncate(" ".join(value.split()), _MAIN_CHARS)
    return ""


def record_note(number: int) -> str:
    return f"; message {number}" if number else ""


def truncate(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"


def fitting(lines: Iterable[str], tokens: int) -> list[str]:
    """Return the first lines that fit."""
    kept: list[str] = []
    for line in lines:
        tokens -= estimate_tokens(line) + 1
        if tokens < 0:
            break
        kept.append(line)
    return kept


def elide(text: str, limit: int, number: int) -> str:
    """Keep start and end of a long text with a note about the cut."""
    if len(text) <= limit:
        return text
    head, tail = limit * 6 // 10, limit * 3 // 10
    left = len(text) - head - tail
    return f"{text[:head]}\n[… {left} characters left out{record_note(number)} …]\n{text[-tail:]}"


def _user(message: UserMessage, number: int, limit: int) -> UserMessage:
    text = message.text
    images = sum(isinstance(part, Image) for part in message.parts)
    if not images and len(text) <= limit:
        return message
    shown = "\n".join([elide(text, limit, number), *[PICTURE] * images])
    return replace(message, parts=(Text(text=shown),))


def _assistant(message: AssistantMessage, number: int) -> AssistantMessage:
    parts: list[Text | Reasoning | ToolCall] = []
    for part in message.parts:
        if isinstance(part, Text):
            parts.append(replace(part, text=elide(part.text, _SPOKEN_CHARS, number)))
        elif isinstance(part, ToolCall):
            arguments = {name: _short(value) for name, value in part.arguments.items()}
            parts.append(replace(part, arguments=arguments))
    return replace(message, parts=tuple(parts or message.parts))


def _short(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return truncate(value, ARGUMENT_CHARS)
    if isinstance(value, list):
        return [_short(each) for each in value]
    if isinstance(value, dict):
        return {name: _short(each) for name, each in value.items()}
    return value


_CAPS = (8_000, 4_000, 2_000, 1_000, 500, 200)
_STEP = 2


def shrink(shortened: Compacted, transcript: Transcript, tokens: int) -> Compacted:
    """Move all messages into the head and cut them to the limit where possible; the newest request
    is cut last."""
    tail, number = transcript.messages[shortened.upto :], transcript.number_of
    older, newest = tail[:-_STEP], tail[-_STEP:]
    if older and isinstance(newest[0], ToolMessage):
        older, newest = older[:-1], [older[-1], *newest]
    best = shortened
    for cap in _CAPS:
        lines = prune(older, number, user_chars=max(cap, 2_000))
        head = (*shortened.head, *lines, *(_cap_results(each, cap, number) for each in newest))
        best = replace(shortened, head=head, upto=len(transcript.messages))
        if messages_tokens(head) <= tokens:
            return best
    return _cut_user_messages(best, number, tokens)


def _cut_user_messages(shortened: Compacted, number: Number, tokens: int) -> Compacted:
    """Cut user messages, longest first, as far as needed."""
    head = list(shortened.head)
    for _ in range(len(head)):
        over = messages_tokens(head) - tokens
        sizes = [len(each.text) if isinstance(each, UserMessage) else 0 for each in head]
        longest = max(range(len(head)), key=sizes.__getitem__)
        message = head[longest]
        if over <= 0 or not isinstance(message, UserMessage) or sizes[longest] < 400:
            break
        limit = max(300, sizes[longest] - (over + 50) * CHARS_PER_TOKEN)
        head[longest] = replace(
            message, parts=(Text(text=elide(message.text, limit, number(message))),)
        )
    return replace(shortened, head=tuple(head))


def _cap_results(message: Message, cap: int, number: Number) -> Message:
    if not isinstance(message, ToolMessage):
        return message
    results: list[ToolResult] = []
    for result in message.results:
        parts = result.parts
        if len(result.text) > cap:
            persisted = result.details.get("persisted")
            note = f"\n[the whole text is in {persisted}]" if persisted else ""
            text = Text(text=elide(result.text, cap, number(result)) + note)
            parts = (text, *(part for part in parts if isinstance(part, Image)))
        results.append(replace(result, parts=parts, details={}))
    return ToolMessage(results=tuple(results))
