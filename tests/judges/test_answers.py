"""Answers of the scripted server have the types of the vendors' own libraries, event by event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from anthropic.types import Message, RawMessageStreamEvent
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from hermes.codec.values import JsonObject
from hermes.core.messages import Usage
from hermes.testing.responder import Prices
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import (
    Step,
    calls,
    calls_many,
    costs,
    says,
    says_nothing,
    thinks,
)
from hermes.testing.wires.table import WIRES, WireName

VERSION = {"anthropic-version": "2023-06-01"}
HI: JsonObject = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 100}
BODIES: dict[WireName, JsonObject] = {"chat": HI, "responses": {"input": "hi"}, "messages": HI}
WHOLE: dict[WireName, Any] = {"chat": ChatCompletion, "responses": Response, "messages": Message}
EVENTS: dict[WireName, Any] = {
    "chat": ChatCompletionChunk,
    "responses": ResponseStreamEvent,
    "messages": RawMessageStreamEvent,
}
# What others than OpenAI put into chat answers.
EXTRAS = {"cost", "reasoning", "reasoning_content", "reasoning_details"}
STEPS: dict[str, Step] = {
    "text": says("Hello, é and 😀."),
    "nothing": says_nothing(),
    "calls": calls_many(("look", {"at": "x"}), ("look", {}), text="I look."),
    "a thought": thinks("Hm.", then=says("So.")),
    "a thought and a call": thinks("Hm.", then=calls("look")),
    "a thought of an aggregator": thinks("Hm.", form="reasoning", then=says("So.")),
    "an inline thought": thinks("Hm.", form="inline", then=says("So.")),
    "a thought without a seal": thinks("Hm.", sealed="", then=says("So.")),
    "a thought that is hidden": thinks("", sealed="hidden", then=says("So.")),
    "only a thought": thinks("Hm."),
    "too long": says("And so", stop="length"),
    "refused": says("I'd rather", stop="filtered"),
    "all counts": costs(
        says("x"),
        Usage(input=5, output=3, cache_read=2, cache_write=1, reasoning=1, requests=1),
    ),
}


def extras(value: object) -> Iterator[str]:
    """The names of fields that the library does not know."""
    if isinstance(value, BaseModel):
        yield from value.__pydantic_extra__ or ()
        for name in type(value).model_fields:
            yield from extras(getattr(value, name))
    elif isinstance(value, list):
        for item in value:
            yield from extras(item)


async def asked(wire: WireName, step: Step, *, stream: bool) -> str:
    body = BODIES[wire] | {"model": "m", "stream": stream}
    if wire == "chat" and stream:
        body["stream_options"] = {"include_usage": True}
    server = ScriptedServer([step], prices=Prices(input=1, output=2))
    async with server, httpx2.AsyncClient(verify=False, headers=VERSION, timeout=60) as http:
        answer = await http.post(
            f"{server.url}/v1{WIRES[wire].PATH.removeprefix('/v1')}", json=body
        )
    return answer.text


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("wire", WIRES)
async def test_a_whole_answer_has_the_type_of_the_library(wire: WireName, name: str) -> None:
    raw = await asked(wire, STEPS[name], stream=False)
    found = TypeAdapter[Any](WHOLE[wire]).validate_json(raw, strict=True)
    assert set(extras(found)) <= (EXTRAS if wire == "chat" else set())


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("wire", WIRES)
async def test_every_event_has_a_type_of_the_library(wire: WireName, name: str) -> None:
    raw = await asked(wire, STEPS[name], stream=True)
    lines = [line[6:] for line in raw.splitlines() if line.startswith("data: ")]
    if wire == "chat":
        assert lines.pop() == "[DONE]"
    adapter = TypeAdapter[Any](EVENTS[wire])
    found = [adapter.validate_json(line, strict=True) for line in lines]
    assert {name for event in found for name in extras(event)} <= (
        EXTRAS if wire == "chat" else set()
    )
    assert found
