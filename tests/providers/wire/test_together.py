"""What comes in one read is told in as few pieces as its kinds allow."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import ProviderError
from hermes.core.prompt import CallNamed, Delta, ReasoningDelta, Restarted, TextDelta
from hermes.net.sse import SseEvent
from hermes.providers.endpoint import Endpoint
from hermes.providers.profile import ModelProfile
from hermes.providers.wire.chat import ChatWire
from hermes.providers.wire.events import MAX_DELTA_CHARS, coalesce
from hermes.providers.wire.format import ImageLoader, ReplyReader
from hermes.providers.wire.messages import MessagesWire
from hermes.providers.wire.responses import ResponsesWire

Kind = type[ChatWire] | type[MessagesWire] | type[ResponsesWire]
# What thoughts in a text are made of, and what is hard about texts.
PIECES = st.sampled_from(
    ["<think>", "</think>", "```", "<", "a", " ", "\n", "é", "\U0001f600", "`"]
)


def reader(kind: Kind = ChatWire) -> ReplyReader:
    at = Endpoint(name="t", wire="chat", url="http://127.0.0.1/v1", model="m")
    made = kind(at, ModelProfile(), cache_ttl="5m", pictures=ImageLoader())
    return made.reader(used_ids=set(), message_count=4)


def event(**delta: object) -> SseEvent:
    return SseEvent("", json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode())


def stream(kind: Kind, pieces: Iterable[str]) -> list[SseEvent]:
    """An answer of these pieces, in the words of a wire."""
    if kind is ChatWire:
        said: list[object] = [{"model": "m", "choices": [{"delta": {"role": "assistant"}}]}]
        said += [{"model": "m", "choices": [{"delta": {"content": each}}]} for each in pieces]
        said.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        said.append({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
    elif kind is MessagesWire:
        said = [{"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 7}}}]
        for each in pieces:
            delta = {"type": "text_delta", "text": each}
            said.append({"type": "content_block_delta", "index": 0, "delta": delta})
        said.append({"type": "content_block_stop", "index": 0})
        said.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}})
        said.append({"type": "message_stop"})
    else:
        said = []
        for each in pieces:
            kept = {"type": "response.output_text.delta", "output_index": 0}
            said.append({**kept, "delta": each})
        done = {"model": "m", "status": "completed", "usage": {"input_tokens": 7}}
        said.append({"type": "response.completed", "response": done})
    return [SseEvent("", json.dumps(each).encode()) for each in said]


def shown_text(deltas: Iterable[Delta]) -> tuple[str, str]:
    """What a person sees at the end: words, and thoughts."""
    words = thoughts = ""
    for delta in deltas:
        match delta:
            case TextDelta(text=text):
                words += text
            case ReasoningDelta(text=text):
                thoughts += text
            case Restarted():
                words = ""
            case _:
                pass
    return words, thoughts


def test_neighbours_of_one_kind_are_one_piece() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "look", "arguments": "{}"}}
    events = [
        event(reasoning="Let me "),
        event(reasoning="see."),
        event(content="One "),
        event(content="moment."),
        event(tool_calls=[call]),
    ]
    assert list(coalesce(reader(), events)) == [
        ReasoningDelta(text="Let me see."),
        TextDelta(text="One moment."),
        CallNamed(name="look"),
    ]


def test_a_long_read_is_told_in_parts() -> None:
    said = list(coalesce(reader(), [event(content="a")] * (2 * MAX_DELTA_CHARS + 1)))
    assert [len(each.text) for each in said if isinstance(each, TextDelta)] == [
        MAX_DELTA_CHARS,
        MAX_DELTA_CHARS,
        1,
    ]


def test_what_came_before_a_failure_is_told_before_it() -> None:
    broken = SseEvent("", b'{"error": {"message": "overloaded", "code": 529}}')
    events = [event(content="half "), event(content="a word"), broken, event(content="no")]
    told = coalesce(reader(), events)
    assert next(told) == TextDelta(text="half a word")
    with pytest.raises(ProviderError):
        next(told)


@pytest.mark.parametrize("wire", (ChatWire, MessagesWire, ResponsesWire))
@given(pieces=st.lists(PIECES, max_size=12), cuts=st.sets(st.integers(0, 12)))
def test_a_reply_is_the_same_however_its_events_came(
    wire: Kind, pieces: list[str], cuts: set[int]
) -> None:
    """Together, one by one, or some of them together."""
    events = stream(wire, pieces)
    alone, joined = reader(wire), reader(wire)
    one_by_one = [delta for each in events for delta in alone.feed(each)]
    at = [0, *sorted(cut for cut in cuts if cut < len(events)), len(events)]
    groups = [events[a:b] for a, b in pairwise(at)]
    together = [delta for group in groups for delta in coalesce(joined, group)]
    assert shown_text(one_by_one) == shown_text(together)
    for each in (alone, joined):
        list(each.builder.finish())
    assert alone.message() == joined.message()
    assert alone.usage == joined.usage
    assert (alone.ended, alone.model) == (joined.ended, joined.model)


@pytest.mark.parametrize(
    "more",
    (
        {"choices": [{"delta": {"content": "a", "refusal": "no"}}]},
        {"choices": [{"delta": {"content": "a", "reasoning": "hm"}}]},
        {"choices": [{"delta": {"content": "a"}, "finish_reason": "length"}]},
        {"choices": [{"delta": {"content": "a"}, "error": {"message": "broken"}}]},
        {"choices": [{"delta": {"content": "a"}}], "usage": {"prompt_tokens": 3}},
        {"choices": [{"delta": {"content": "a"}}], "error": {"message": "broken"}},
        {"choices": [{"delta": {"content": [{"type": "text", "text": "a"}]}}]},
        {"choices": [{"message": {"content": "a"}}]},
        {"choices": []},
    ),
)
def test_an_event_with_more_than_words_gets_a_closer_look(more: dict[str, object]) -> None:
    made = reader()
    list(made.feed(SseEvent("", b'{"model": "m", "choices": []}')))
    assert made.plain_text(SseEvent("", json.dumps(more).encode())) is None
    assert made.plain_text(event(content="a")) == "a"
