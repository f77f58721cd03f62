"""The three wire formats as a table of functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from hermes.codec.values import JsonObject
from hermes.testing.steps import Failure
from hermes.testing.wires import chat, messages, responses
from hermes.testing.wires import chat as chat_grammar
from hermes.testing.wires import messages as messages_grammar
from hermes.testing.wires import responses as responses_grammar
from hermes.testing.wires.draft import Frame, ReplyDraft

WireName = Literal["chat", "responses", "messages"]


class WireFormat(NamedTuple):
    path: str
    call_prefix: str
    body: Callable[[ReplyDraft], JsonObject]
    events: Callable[[ReplyDraft], Iterator[Frame]]
    error_event: Callable[[ReplyDraft, Failure, int], Frame]
    find_problems: Callable[[JsonObject, dict[str, str]], Iterator[str]]


WIRES: dict[WireName, WireFormat] = {
    "chat": WireFormat(
        path="/chat/completions",
        call_prefix="call_",
        body=chat.body,
        events=chat.events,
        error_event=chat.error_event,
        find_problems=chat_grammar.find_problems,
    ),
    "responses": WireFormat(
        path="/responses",
        call_prefix="call_",
        body=responses.body,
        events=responses.events,
        error_event=responses.error_event,
        find_problems=responses_grammar.find_problems,
    ),
    "messages": WireFormat(
        path="/v1/messages",
        call_prefix="toolu_",
        body=messages.body,
        events=messages.events,
        error_event=messages.error_event,
        find_problems=messages_grammar.find_problems,
    ),
}


def wire_of(path: str) -> WireName | None:
    """The wire format of a path, under any prefix."""
    bare = path.partition("?")[0]
    return next((name for name, wire in WIRES.items() if bare.endswith(wire.path)), None)
