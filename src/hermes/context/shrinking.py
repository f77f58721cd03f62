"""Last resort of compaction: also cuts the newest messages until everything fits."""

from __future__ import annotations

from hermes.codec.values import replace
from hermes.context.pruning import Number, elide, prune
from hermes.context.tokens import CHARS_PER_TOKEN, messages_tokens
from hermes.core.events import Compacted
from hermes.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from hermes.core.transcript import Transcript

_CAPS = (8_000, 4_000, 2_000, 1_000, 500, 200)
_STEP = 2


def shrink(shortened: Compacted, transcript: Transcript, tokens: int) -> Compacted:
    """Moves all messages into the head and cuts them to the limit where possible; the newest
    request is cut last."""
    tail, number = transcript.messages[shortened.upto :], transcript.number_of
    older, newest = tail[:-_STEP], tail[-_STEP:]
    if older and isinstance(newest[0], ToolMessage):
        older, newest = older[:-1], [older[-1], *newest]
    best = shortened
    for cap in _CAPS:
        lines = prune(older, number, user_chars=max(cap, 2_000))
        head = (*shortened.head, *lines, *(_cap_message(each, cap, number) for each in newest))
        best = replace(shortened, head=head, upto=len(transcript.messages))
        if messages_tokens(head) <= tokens:
            return best
    return _cut_user_messages(best, number, tokens)


def _cut_user_messages(shortened: Compacted, number: Number, tokens: int) -> Compacted:
    """Cuts user messages, longest first, as far as needed."""
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


def _cap_message(message: Message, cap: int, number: Number) -> Message:
    match message:
        case ToolMessage():
            return ToolMessage(results=tuple(_result(r, cap, number) for r in message.results))
        case AssistantMessage() | UserMessage():
            return message


def _result(result: ToolResult, cap: int, number: Number) -> ToolResult:
    if len(result.text) <= cap:
        return replace(result, details={})
    kept = result.details.get("persisted")
    note = f"\n[the whole text is in {kept}]" if kept else ""
    text = elide(result.text, cap, number(result)) + note
    images = tuple(part for part in result.parts if isinstance(part, Image))
    return replace(result, parts=(Text(text=text), *images), details={})
