"""Answers in shapes that the scripted server does not send."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import ProviderError
from hermes.core.messages import AssistantMessage, Reasoning, Text, ToolCall, Usage
from hermes.core.prompt import Delta, ReasoningDelta, Restarted, TextDelta
from hermes.net.sse import SseEvent
from hermes.providers.endpoint import Endpoint
from hermes.providers.pipeline import wire_format
from hermes.providers.profile import ModelProfile, WireName
from hermes.providers.wire.format import ImageLoader, ReplyReader

ALL: tuple[WireName, ...] = ("chat", "responses", "messages")


def reader(wire: WireName) -> ReplyReader:
    at = Endpoint(name="t", wire=wire, url="http://127.0.0.1/v1", model="m")
    made = wire_format(wire)(at, ModelProfile(), cache_ttl="5m", pictures=ImageLoader())
    return made.reader(used_ids=set(), message_count=4)


def feed(reading: ReplyReader, *events: Any) -> list[Delta]:
    deltas: list[Delta] = []
    for event in events:
        data = event if isinstance(event, bytes) else json.dumps(event).encode()
        deltas += reading.feed(SseEvent("", data))
    return [*deltas, *reading.builder.finish()]


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def piece(index: int | None = None, id: str | None = None, **function: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"function": function}
    if index is not None:
        made["index"] = index
    if id is not None:
        made["id"] = id
    return chunk(tool_calls=[made])


def calls(*events: Any) -> list[tuple[str, str, Any]]:
    reading = reader("chat")
    feed(reading, *events, b"[DONE]")
    return [(c.id, c.name, c.broken or c.arguments) for c in reading.message().calls]


def test_calls_without_numbers_are_told_apart_by_their_ids() -> None:
    assert calls(
        piece(None, "a", name="look", arguments='{"at"'),
        piece(None, "a", arguments=": 1}"),
        piece(None, "b", name="look", arguments='{"at": 2}'),
    ) == [("a", "look", {"at": 1}), ("b", "look", {"at": 2})]


def test_calls_with_nothing_to_tell_them_apart_go_by_their_names() -> None:
    assert calls(
        piece(name="look", arguments='{"at": 1}'), piece(name="go", arguments='{"to": 2}')
    ) == [("call_4_0", "look", {"at": 1}), ("call_4_1", "go", {"to": 2})]


def test_a_name_may_come_in_pieces() -> None:
    assert calls(
        piece(0, "a", name="lo"), piece(0, name="ok"), piece(0, arguments='{"at": 1}')
    ) == [("a", "look", {"at": 1})]


def test_an_echo_of_the_name_is_no_second_call() -> None:
    assert calls(
        piece(0, None, name="look", arguments='{"at": 1}'),
        piece(0, None, name="look", arguments=""),
    ) == [("call_4_0", "look", {"at": 1})]


def test_arguments_may_come_as_growing_snapshots() -> None:
    assert calls(
        piece(0, "a", name="look", arguments='{"at'),
        piece(0, "a", name="look", arguments='{"at": "x'),
        piece(0, "a", name="look", arguments='{"at": "xy"}'),
    ) == [("a", "look", {"at": "xy"})]


def test_the_old_form_of_calls_is_understood() -> None:
    assert calls(
        chunk(function_call={"name": "look", "arguments": '{"at"'}),
        chunk(function_call={"arguments": ": 1}"}),
    ) == [("call_4_0", "look", {"at": 1})]


def test_null_fields_and_unknown_events_do_no_harm() -> None:
    reading = reader("chat")
    deltas = feed(
        reading,
        b"",
        b"ping",
        b"{}",
        {"choices": None, "usage": None},
        {"choices": [None, 5]},
        chunk(content=None, tool_calls=None, reasoning=None),
        {"object": "chat.something.new", "x": 1},
        chunk("stop", content="ok"),
    )
    assert deltas == [TextDelta(text="ok")]
    assert reading.message() == AssistantMessage(parts=(Text(text="ok"),))


def test_an_error_object_in_a_stream_is_an_error() -> None:
    reading = reader("chat")
    with pytest.raises(ProviderError) as caught:
        feed(reading, {"error": {"code": 429, "message": "slow down"}})
    assert caught.value.reason == "rate_limit"


def test_several_objects_in_one_event_are_all_read() -> None:
    reading = reader("chat")
    lines = b"\n".join(json.dumps(chunk(content=word)).encode() for word in ("a", "b"))
    assert feed(reading, lines) == [TextDelta(text="a"), TextDelta(text="b")]


def test_halves_of_a_character_are_joined_over_events() -> None:
    reading = reader("chat")
    deltas = feed(
        reading,
        b'{"choices":[{"delta":{"content":"x\\ud83d"}}]}',
        b'{"choices":[{"delta":{"content":"\\ude00y"}}]}',
        b'{"choices":[{"delta":{"content":"\\ud83d"}}]}',
    )
    assert deltas == [TextDelta(text="x"), TextDelta(text="😀y"), TextDelta(text="\ufffd")]


def test_text_before_a_lonely_end_of_thought_is_taken_back() -> None:
    reading = reader("chat")
    deltas = feed(reading, chunk(content="hm\n"), chunk("stop", content="</think>\n\nso"))
    assert deltas == [
        TextDelta(text="hm\n"),
        Restarted(),
        ReasoningDelta(text="hm\n"),
        TextDelta(text="so"),
    ]
    assert reading.message() == AssistantMessage(parts=(Reasoning(text="hm\n"), Text(text="so")))


def test_pieces_of_reasoning_details_become_blocks_again() -> None:
    reading = reader("chat")
    detail = {"type": "reasoning.text", "index": 0}
    feed(
        reading,
        chunk(reasoning="a", reasoning_details=[{**detail, "text": "a"}]),
        chunk(reasoning="b", reasoning_details=[{**detail, "text": "b"}]),
        chunk(reasoning_details=[{**detail, "signature": "sig"}]),
        chunk("stop", content="so"),
    )
    thought = reading.message().parts[0]
    assert isinstance(thought, Reasoning)
    assert thought.text == "ab"
    assert thought.sealed == {"reasoning_details": [{**detail, "text": "ab", "signature": "sig"}]}


def test_costs_and_cache_counts_of_aggregators_are_read() -> None:
    reading = reader("chat")
    feed(
        reading,
        {
            "choices": [],
            "usage": {
                "prompt_tokens": 100,
                "completion_tokens": 7,
                "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
                "completion_tokens_details": {"reasoning_tokens": 3},
                "cost": 0.25,
            },
        },
    )
    assert reading.usage == Usage(
        input=30, output=7, cache_read=60, cache_write=10, reasoning=3, requests=1, cost=0.25
    )


def test_redacted_thoughts_are_kept_as_they_are() -> None:
    reading = reader("messages")
    block = {"type": "redacted_thinking", "data": "opaque"}
    feed(
        reading,
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "x"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    )
    thought = reading.message().parts[0]
    assert isinstance(thought, Reasoning)
    assert (thought.sealed, thought.issuer) == (block, "messages:127.0.0.1/m")


def test_thoughts_without_a_signature_are_not_sealed() -> None:
    reading = reader("messages")
    thinking = {"type": "thinking", "thinking": "hm", "signature": ""}
    feed(
        reading,
        {"type": "content_block_start", "index": 0, "content_block": thinking},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    )
    assert reading.message().parts == (Reasoning(text="hm"),)


def test_counts_at_the_end_replace_those_of_the_beginning() -> None:
    reading = reader("messages")
    first = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 5}
    last = {"output_tokens": 42, "input_tokens": None, "cache_creation_input_tokens": 3}
    feed(
        reading,
        {"type": "message_start", "message": {"usage": first}},
        {"type": "message_delta", "delta": {}, "usage": last},
    )
    assert reading.usage == Usage(input=10, output=42, cache_read=5, cache_write=3, requests=1)


def test_a_refusal_is_shown_and_named() -> None:
    reading = reader("responses")
    item = {"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}
    deltas = feed(
        reading,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"status": "completed"}},
    )
    assert deltas == [TextDelta(text="No.")]
    assert reading.message() == AssistantMessage(parts=(Text(text="No."),), stop="filtered")


def test_calls_that_only_came_in_pieces_are_kept() -> None:
    reading = reader("responses")
    item = {"type": "function_call", "call_id": "c", "name": "look", "arguments": ""}
    delta = {"type": "response.function_call_arguments.delta", "output_index": 0}
    feed(
        reading,
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {**delta, "delta": '{"at"'},
        {**delta, "delta": ": 1}"},
        {"type": "response.completed", "response": {"status": "completed"}},
    )
    assert reading.message().parts == (ToolCall(id="c", name="look", arguments={"at": 1}),)


FIELDS = (
    "type choices delta content tool_calls function name arguments index id usage message text "
    "content_block thinking signature item response output output_index error"
).split()
KINDS = (
    "content_block_start content_block_delta message_delta response.output_item.done "
    "response.output_item.added response.completed response.output_text.delta x"
).split()
kinds = st.sampled_from(KINDS)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("wire", ALL)
def test_any_json_is_read_without_a_crash(wire: WireName) -> None:
    @given(st.lists(st.tuples(kinds, json_values), max_size=4), json_values)
    def read(events: list[tuple[str, Any]], body: Any) -> None:
        for whole in (False, True):
            reading = reader(wire)
            try:
                if whole:
                    list(reading.read(body if isinstance(body, dict) else {}))
                else:
                    for kind, value in events:
                        given_value = value if isinstance(value, dict) else {"choices": [value]}
                        feed(reading, {"type": kind, **given_value})
            except ProviderError:
                continue
            list(reading.builder.finish())
            reading.message()

    read()
