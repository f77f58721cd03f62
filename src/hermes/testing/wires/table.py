"""The three wire formats by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol

from hermes.codec.values import JsonObject
from hermes.testing.steps import Failure
from hermes.testing.wires import chat, messages, responses
from hermes.testing.wires.draft import Frame, ReplyDraft

WireName = Literal["chat", "responses", "messages"]


class ScriptedWire(Protocol):
    """What each module of a wire format has."""

    PATH: str
    CALL_PREFIX: str

    def body(self, draft: ReplyDraft, /) -> JsonObject: ...

    def events(self, draft: ReplyDraft, /) -> Iterator[Frame]: ...

    def error_event(self, draft: ReplyDraft, failure: Failure, number: int, /) -> Frame: ...

    def find_problems(self, body: JsonObject, headers: dict[str, str], /) -> Iterator[str]: ...


WIRES: dict[WireName, ScriptedWire] = {"chat": chat, "responses": responses, "messages": messages}


def wire_of(path: str) -> WireName | None:
    """The wire format of a path, under any prefix."""
    bare = path.partition("?")[0]
    if predicted_model(bare):
        return "messages"
    return next((name for name, wire in WIRES.items() if bare.endswith(wire.PATH)), None)


def named_body(body: JsonObject, path: str) -> JsonObject:
    """The body as the messages format has it: Vertex AI expects the model in the path, and the
    version in the body."""
    model = predicted_model(path)
    if not model:
        return body
    rest = {name: value for name, value in body.items() if name != "anthropic_version"}
    return {**rest, "model": model}


def predicted_model(path: str) -> str:
    """The model in the path of a Vertex AI request in the messages format, or ""."""
    name, _, method = path.rpartition("/")[2].partition(":")
    return name if method in ("rawPredict", "streamRawPredict") else ""
