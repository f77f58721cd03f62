"""The three wire formats by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol

from hermes.codec.values import JsonObject
from hermes.testing.steps import Failure
from hermes.testing.wires import chat, messages, responses
from hermes.testing.wires.draft import Frame, ReplyDraft

WireName = Literal["chat", "responses", "messages"]


class WireModule(Protocol):
    """What each module of a wire format has."""

    PATH: str
    CALL_PREFIX: str

    def body(self, draft: ReplyDraft, /) -> JsonObject: ...

    def events(self, draft: ReplyDraft, /) -> Iterator[Frame]: ...

    def error_event(self, draft: ReplyDraft, failure: Failure, number: int, /) -> Frame: ...

    def find_problems(self, body: JsonObject, headers: dict[str, str], /) -> Iterator[str]: ...


WIRES: dict[WireName, WireModule] = {"chat": chat, "responses": responses, "messages": messages}


def wire_of(path: str) -> WireName | None:
    """The wire format of a path, under any prefix."""
    bare = path.partition("?")[0]
    return next((name for name, wire in WIRES.items() if bare.endswith(wire.PATH)), None)
