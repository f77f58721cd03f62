"""The bytes that are sent: shapes that only one wire has, marks, and a beginning that stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.codec.values import replace
from hermes.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    user_says,
)
from hermes.core.prompt import Prompt, ToolSpec
from hermes.providers.endpoint import Endpoint
from hermes.providers.normalization import ConversationNormalizer
from hermes.providers.pipeline import wire_format
from hermes.providers.profile import CacheTtl, ModelProfile, WireName
from hermes.providers.wire.format import ImageLoader, WireFormat
from tests.providers.conversations import growing_conversation, issuer, sealed_for
from tests.providers.judges import judge

TOOL = ToolSpec(
    name="look",
    description="Look.",
    parameters={
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "pattern": "^a+$", "format": "uri"},
            "many": {"type": "array", "items": {"type": "string", "pattern": "b"}},
        },
    },
)
ALL: tuple[WireName, ...] = ("chat", "responses", "messages")


def build_wire(
    wire: WireName, profile: ModelProfile | None = None, cache_ttl: CacheTtl = "5m"
) -> WireFormat:
    profile = profile or ModelProfile(replay="none" if wire == "chat" else "sealed")
    at = Endpoint(name="t", wire=wire, url="http://127.0.0.1/v1", model="scripted", profile=profile)
    return wire_format(wire)(at, profile, cache_ttl=cache_ttl, pictures=ImageLoader())


def body(wire: WireFormat, prompt: Prompt) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        wire.encode(prompt, ConversationNormalizer().normalize(prompt.messages))
    )
    return found


def rounds(count: int) -> tuple[Message, ...]:
    messages: list[Message] = [user_says("go")]
    for n in range(count):
        call = ToolCall(id=f"c{n}", name="look", arguments={"n": n})
        messages.append(AssistantMessage(parts=(Text(text=f"step {n}"), call), stop="calls"))
        result = ToolResult(call_id=call.id, name="look", parts=(Text(text=f"result {n}"),))
        messages.append(ToolMessage(results=(result,)))
    return tuple(messages)


HI = Prompt(system="Be brief.", messages=(user_says("hi"),), tools=(TOOL,))


def test_a_chat_request_has_this_shape() -> None:
    prompt = replace(HI, max_tokens=100)
    assert body(build_wire("chat"), prompt) == {
        "model": "scripted",
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "look",
                    "description": "Look.",
                    "parameters": TOOL.parameters,
                },
            }
        ],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
        ],
        "tool_choice": "auto",
        "max_tokens": 100,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_responses_request_has_this_shape() -> None:
    profile = ModelProfile(effort="responses", replay="sealed")
    found = body(build_wire("responses", profile), replace(HI, max_tokens=100, effort="minimal"))
    assert len(found.pop("prompt_cache_key")) <= 64
    assert found == {
        "model": "scripted",
        "instructions": "Be brief.",
        "tools": [
            {
                "type": "function",
                "name": "look",
                "description": "Look.",
                "parameters": TOOL.parameters,
                "strict": False,
            }
        ],
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "hi"}],
            }
        ],
        "store": False,
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "max_output_tokens": 100,
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "stream": True,
    }


def test_a_messages_request_has_this_shape() -> None:
    profile = ModelProfile(marks="native", max_output=64_000, replay="sealed")
    assert body(build_wire("messages", profile, "1h"), HI) == {
        "model": "scripted",
        "tools": [{"name": "look", "description": "Look.", "input_schema": TOOL.parameters}],
        "system": [
            {
                "type": "text",
                "text": "Be brief.",
                "cache_control": {"type": "ephemeral", "ttl": "1h"},
            }
        ],
        "messages": [
            {
                "role": "user",
                "content": [
                    {
                        "type": "text",
                        "text": "hi",
                        "cache_control": {"type": "ephemeral", "ttl": "1h"},
                    }
                ],
            }
        ],
        "max_tokens": 64_000,
        "tool_choice": {"type": "auto"},
        "stream": True,
    }


def test_requests_without_tools_or_system_leave_them_out() -> None:
    for wire in ALL:
        found = body(build_wire(wire), Prompt(system="", messages=(user_says("hi"),)))
        assert not {"tools", "tool_choice", "system", "instructions"} & found.keys()


def test_the_system_text_has_the_role_that_the_model_wants() -> None:
    found = body(build_wire("chat", ModelProfile(developer=True)), HI)
    assert found["messages"][0]["role"] == "developer"


def test_results_and_the_words_after_them_are_one_message_of_the_user() -> None:
    messages = (*rounds(1), user_says("and now?"))
    found = body(build_wire("messages"), replace(HI, messages=messages))
    last = found["messages"][-1]
    assert [block["type"] for block in last["content"]] == ["tool_result", "text"]
    assert len(found["messages"]) == 3


@pytest.mark.parametrize(("wire", "marks"), [("messages", "native"), ("chat", "envelope")])
def test_ten_messages_carry_four_marks(wire: WireName, marks: Any) -> None:
    profile = ModelProfile(marks=marks)
    raw = build_wire(wire, profile).encode(
        replace(HI, messages=rounds(5)[:-1]), ConversationNormalizer().normalize(rounds(5)[:-1])
    )
    assert raw.count(b'"cache_control":{"type":"ephemeral"}') == 4
    judge(wire, raw)


def test_messages_that_cannot_carry_a_mark_are_passed_over() -> None:
    silent = AssistantMessage(parts=(ToolCall(id="c", name="look"),), stop="calls")
    empty = ToolMessage(results=(ToolResult(call_id="c", name="look", parts=()),))
    messages = (user_says("a"), AssistantMessage(parts=(Text(text="b"),)), user_says("c"))
    prompt = replace(HI, messages=(*messages, silent, empty))
    found = body(build_wire("chat", ModelProfile(marks="envelope")), prompt)
    carried = ["cache_control" in json.dumps(message) for message in found["messages"]]
    assert carried == [True, True, True, True, False, False]


@pytest.mark.parametrize(
    ("wire", "marks", "carried"),
    [
        ("chat", "envelope", [True, True, True, False]),
        # The system text is no message there.
        ("messages", "native", [True, True, True]),
    ],
)
async def test_an_aggregator_takes_marks_on_text_only(
    wire: WireName, marks: Any, carried: list[bool], tmp_path: Path
) -> None:
    said = AssistantMessage(parts=(Text(text="b"),))
    messages = (user_says("a"), said, user_says("c", cat_in(tmp_path)))
    found = await seen(wire, replace(HI, messages=messages), ModelProfile(marks=marks))
    assert ["cache_control" in json.dumps(message) for message in found["messages"]] == carried


@pytest.mark.parametrize("wire", ALL)
async def test_a_picture_in_a_result_has_no_blank_text_beside_it(
    wire: WireName, tmp_path: Path
) -> None:
    call = ToolCall(id="c", name="look")
    parts = (Text(text=" "), cat_in(tmp_path), Text(text=""))
    result = ToolResult(call_id="c", name="look", parts=parts)
    messages = (user_says("a"), AssistantMessage(parts=(call,)), ToolMessage(results=(result,)))
    found = await seen(wire, replace(HI, messages=messages))
    last = (found.get("messages") or found["input"])[-1]
    held = last["content"][0]["content"] if wire == "messages" else last.get("content")
    kinds = {"chat": "image_url", "responses": "input_image", "messages": "image"}
    assert [part["type"] for part in held or last["output"]] == [kinds[wire]]


def cat_in(folder: Path) -> Image:
    file = folder / "cat.png"
    file.write_bytes(b"cat")
    return Image(file=str(file), media_type="image/png")


async def seen(
    name: WireName, prompt: Prompt, profile: ModelProfile | None = None
) -> dict[str, Any]:
    """The request with its pictures."""
    pictures = ImageLoader()
    await pictures.load(prompt.messages)
    at = Endpoint(name="t", wire=name, url="http://127.0.0.1/v1", model="scripted")
    wire = wire_format(name)(at, profile or ModelProfile(), cache_ttl="5m", pictures=pictures)
    return body(wire, prompt)


@pytest.mark.parametrize("wire", ALL)
def test_a_thought_is_sent_only_before_what_it_led_to(wire: WireName) -> None:
    thought = Reasoning(text="hm", sealed=sealed_for(wire), issuer=issuer(wire))
    messages = (
        user_says("a"),
        AssistantMessage(parts=(thought, Text(text="b"), thought)),
        user_says("c"),
    )
    profile = ModelProfile(replay="reasoning_content" if wire == "chat" else "sealed")
    raw = build_wire(wire, profile).encode(
        replace(HI, messages=messages), ConversationNormalizer().normalize(messages)
    )
    judge(wire, raw)
    assert raw.count(b'"hm"' if wire != "responses" else b'"enc"') == 1


def test_thinking_with_a_budget_leaves_room_for_the_answer() -> None:
    profile = ModelProfile(effort="budget", max_output=64_000, replay="sealed")
    found = body(build_wire("messages", profile), replace(HI, max_tokens=24_000, effort="high"))
    assert found["thinking"] == {"type": "enabled", "budget_tokens": 16_000}
    assert found["max_tokens"] == 24_000


@pytest.mark.parametrize(("limit", "thought"), [(12_000, 7_904), (5_000, 0)])
def test_thought_and_answer_together_stay_within_a_wished_limit(limit: int, thought: int) -> None:
    profile = ModelProfile(effort="budget", max_output=64_000, replay="sealed")
    found = body(build_wire("messages", profile), replace(HI, max_tokens=limit, effort="high"))
    assert found["max_tokens"] == limit
    assert found.get("thinking", {"budget_tokens": 0})["budget_tokens"] == thought


def test_calls_that_were_not_thought_about_here_are_answered_without_a_budget() -> None:
    profile = ModelProfile(effort="budget", replay="sealed")
    prompt = replace(HI, messages=rounds(1), effort="high")
    assert "thinking" not in body(build_wire("messages", profile), prompt)
    steered = replace(prompt, messages=(*rounds(1), user_says("and hurry")))
    assert "thinking" not in body(build_wire("messages", profile), steered)


def test_calls_that_begin_with_words_are_answered_without_a_budget() -> None:
    profile = ModelProfile(effort="budget", replay="sealed")
    thought = Reasoning(text="hm", sealed=sealed_for("messages"), issuer=issuer("messages"))
    asked = ToolCall(id="c", name="look")
    result = ToolMessage(results=(ToolResult(call_id="c", name="look", parts=()),))
    for parts, thinks in (((thought, asked), True), ((Text(text="so"), thought, asked), False)):
        messages = (user_says("a"), AssistantMessage(parts=parts), result)
        found = body(build_wire("messages", profile), replace(HI, messages=messages, effort="high"))
        assert ("thinking" in found) is thinks


def test_an_answer_may_be_as_long_as_the_window_has_room() -> None:
    profile = ModelProfile(window=8_000, max_output=6_000)
    prompt = replace(HI, messages=(user_says("word " * 4_000),))
    found = body(build_wire("messages", profile), prompt)
    assert 1_024 <= found["max_tokens"] < 3_500


def test_what_the_profile_forbids_is_left_out_and_what_it_wants_is_added() -> None:
    profile = ModelProfile(
        omit=("stream_options", "tool_choice"),
        extra={"provider": {"sort": "price"}},
        output_field="max_completion_tokens",
        max_output=50,
        patterns=False,
    )
    found = body(build_wire("chat", profile), replace(HI, max_tokens=100))
    assert not {"stream_options", "tool_choice", "max_tokens"} & found.keys()
    assert found["provider"] == {"sort": "price"}
    assert found["max_completion_tokens"] == 50
    properties = found["tools"][0]["function"]["parameters"]["properties"]
    assert properties == {
        "pattern": {"type": "string"},
        "many": {"type": "array", "items": {"type": "string"}},
    }


def test_pictures_can_be_left_out() -> None:
    image = Image(file="/x/cat.png", media_type="image/png")
    call = ToolCall(id="c", name="look")
    result = ToolResult(call_id="c", name="look", parts=(Text(text="it is"), image))
    messages = (
        user_says("what?", image),
        AssistantMessage(parts=(call,), stop="calls"),
        ToolMessage(results=(result,)),
    )
    for wire in ALL:
        profile = ModelProfile(images=False, image_results=False)
        raw = build_wire(wire, profile).encode(
            replace(HI, messages=messages), ConversationNormalizer().normalize(messages)
        )
        assert raw.count(b"[picture: cat.png, not shown]") == 2
        judge(wire, raw)


def test_everything_can_be_sent_in_ascii() -> None:
    messages = (user_says('naïve 😀 \x00\x1b[0m "\\u0041" end\n'),)
    for wire in ALL:
        profile = ModelProfile(ascii=True)
        raw = build_wire(wire, profile).encode(
            replace(HI, system="é", messages=messages), ConversationNormalizer().normalize(messages)
        )
        assert raw.isascii()
        assert 'naïve 😀 ��[0m "\\u0041" end' in str(json.loads(raw)).replace("\\\\", "\\")


def test_each_message_is_encoded_once() -> None:
    for wire_name in ALL:
        wire = build_wire(wire_name)
        messages = rounds(20)
        wire.encode(
            replace(HI, messages=messages[:-2]), ConversationNormalizer().normalize(messages[:-2])
        )
        assert len(wire.fragments.missing(messages)) == 2
        wire.encode(replace(HI, messages=messages), messages)
        assert wire.fragments.missing(messages) == ()
        wire.encode(replace(HI, messages=messages[:3]), messages[:3])
        assert len(wire.fragments.missing(messages)) == len(messages) - 3


def without_marks(raw: bytes) -> str:
    return raw.decode().replace(',"cache_control":{"type":"ephemeral"}', "")


@pytest.mark.parametrize("wire", ALL)
@pytest.mark.parametrize("marks", [False, True])
def test_requests_of_a_session_share_their_beginning(wire: WireName, marks: bool) -> None:
    @given(growing_conversation(wire), st.integers(1, 9))
    def shared(messages: tuple[Message, ...], step: int) -> None:
        style: Any = {"chat": "envelope", "messages": "native"}.get(wire, "off")
        replay: Any = "reasoning_content" if wire == "chat" else "sealed"
        profile = ModelProfile(marks=style if marks else "off", replay=replay)
        kept, before = build_wire(wire, profile), ""
        ends = [n for n, m in enumerate(messages, 1) if not isinstance(m, AssistantMessage)]
        for end in ends:
            prompt = replace(HI, messages=messages[:end], max_tokens=step * end)
            raw = kept.encode(prompt, ConversationNormalizer().normalize(messages[:end]))
            judge(wire, raw)
            fresh = build_wire(wire, profile).encode(
                prompt, ConversationNormalizer().normalize(messages[:end])
            )
            assert raw == fresh
            text = without_marks(raw)
            # Everything up to the end of the last message stays; only the closing part may move.
            settled = before[: before.rindex("]")].rstrip("]}") if before else ""
            assert text.startswith(settled)
            before = text

    shared()


@pytest.mark.parametrize("name", ALL)
def test_sessions_that_begin_alike_send_the_same_and_others_do_not(name: WireName) -> None:
    """What is encoded once is shared by the sessions of an endpoint."""
    profile = ModelProfile(effort="responses", replay="sealed")
    at = Endpoint(name="t", wire=name, url="http://127.0.0.1/v1", model="scripted", profile=profile)
    other = replace(at, model="another")

    def sent(endpoint: Endpoint, prompt: Prompt, cache_ttl: CacheTtl = "5m") -> bytes:
        wire = wire_format(name)(
            endpoint, endpoint.profile, cache_ttl=cache_ttl, pictures=ImageLoader()
        )
        return wire.encode(prompt, prompt.messages)

    first = sent(at, HI)
    assert sent(at, HI) == first
    assert json.loads(sent(other, HI))["model"] == "another"
    assert b"Be long." in sent(at, replace(HI, system="Be long."))
    fresh = replace(at, profile=replace(profile, marks="explicit"))
    assert (b"cache_control" in sent(fresh, HI, "1h")) == (name != "responses")
    assert (b'"1h"' in sent(fresh, HI, "1h")) == (name != "responses")
    assert b'"1h"' not in sent(fresh, HI)
    assert sent(at, HI) == first
