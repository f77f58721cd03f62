"""What comes in one read is told in as few pieces as its kinds allow."""

from __future__ import annotations

import json

import pytest

from hermes.core.errors import ProviderError
from hermes.core.prompt import CallNamed, ReasoningDelta, TextDelta
from hermes.providers.endpoint import Endpoint
from hermes.providers.profile import ModelProfile
from hermes.providers.sse import SseEvent
from hermes.providers.wire.chat import ChatWire
from hermes.providers.wire.format import Reader
from hermes.providers.wire.pictures import Pictures
from hermes.providers.wire.together import MOST_PIECES, read_together


def reader() -> Reader:
    at = Endpoint(name="t", wire="chat", url="http://127.0.0.1/v1", model="m")
    made = ChatWire(at, ModelProfile(), life="5m", pictures=Pictures())
    return made.reader(taken=set(), place=4)


def event(**delta: object) -> SseEvent:
    return SseEvent("", json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode())


def test_neighbours_of_one_kind_are_one_piece() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "look", "arguments": "{}"}}
    events = [
        event(reasoning="Let me "),
        event(reasoning="see."),
        event(content="One "),
        event(content="moment."),
        event(tool_calls=[call]),
    ]
    assert list(read_together(reader(), events)) == [
        ReasoningDelta(text="Let me see."),
        TextDelta(text="One moment."),
        CallNamed(name="look"),
    ]


def test_a_long_read_is_told_in_parts() -> None:
    said = list(read_together(reader(), [event(content="a")] * (2 * MOST_PIECES + 1)))
    assert [len(each.text) for each in said if isinstance(each, TextDelta)] == [
        MOST_PIECES,
        MOST_PIECES,
        1,
    ]


def test_what_came_before_a_failure_is_told_before_it() -> None:
    broken = SseEvent("", b'{"error": {"message": "overloaded", "code": 529}}')
    events = [event(content="half "), event(content="a word"), broken, event(content="no")]
    told = read_together(reader(), events)
    assert next(told) == TextDelta(text="half a word")
    with pytest.raises(ProviderError):
        next(told)
