"""What single endpoints want beyond their wire format, each by a field of the profile."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.codec.values import JsonObject, replace
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    Usage,
    user_says,
)
from hermes.core.prompt import Prompt
from hermes.net.sse import SseEvent
from hermes.providers.endpoint import Auth, Endpoint
from hermes.providers.model_catalogue import shipped_catalogue
from hermes.providers.pipeline import wire_format
from hermes.providers.profile import EffortStyle, ModelProfile, WireName
from hermes.providers.profile_building import RequestOptions
from hermes.providers.wire.format import ImageLoader, WireFormat, request_headers
from hermes.providers.wire.vendor_fields import effort_fields

ALL: tuple[WireName, ...] = ("chat", "responses", "messages")
HI = (user_says("hi"),)
CALL = AssistantMessage(parts=(ToolCall(id="c", name="look"),), stop="calls")
SEEN = ToolMessage(results=(ToolResult(call_id="c", name="look", parts=(Text(text="x"),)),))


def build_wire(wire: WireName, profile: ModelProfile) -> WireFormat:
    at = Endpoint(name="acme", wire=wire, url="http://127.0.0.1/v1", model="m", profile=profile)
    return wire_format(wire)(at, profile, cache_ttl="5m", pictures=ImageLoader())


def body(
    wire: WireFormat, messages: tuple[Message, ...], system: str = "Be brief."
) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        wire.encode(Prompt(system=system, messages=messages), messages)
    )
    return found


@pytest.mark.parametrize("wire", ALL)
def test_a_conversation_keeps_its_id_as_long_as_its_beginning(wire: WireName) -> None:
    asked = build_wire(
        wire, ModelProfile(conversation_field="session_id", conversation_header="x-conv")
    )
    first = body(asked, HI)["session_id"]
    later = body(asked, (*HI, CALL, SEEN))["session_id"]
    resumed = build_wire(wire, ModelProfile(conversation_field="session_id"))
    assert asked.headers["x-conv"] == first == later
    assert body(resumed, (user_says("hi"), CALL, SEEN))["session_id"] == first
    assert body(asked, (user_says("else"),))["session_id"] != first


@pytest.mark.parametrize("wire", ALL)
def test_a_given_id_of_the_conversation_is_used(wire: WireName) -> None:
    asked = build_wire(wire, ModelProfile(conversation_header="x-conv", conversation="s1"))
    assert "session_id" not in body(asked, HI)
    assert asked.headers["x-conv"] == "s1"


@pytest.mark.parametrize("wire", ALL)
def test_nothing_is_told_that_was_not_asked_for(wire: WireName) -> None:
    asked = build_wire(wire, ModelProfile(conversation="s1"))
    assert "s1" not in json.dumps(body(asked, HI))
    assert asked.headers == request_headers(
        Endpoint(name="acme", wire=wire, url="http://127.0.0.1/v1", model="m")
    )


@pytest.mark.parametrize("wire", ALL)
def test_only_the_first_call_of_a_turn_is_the_persons(wire: WireName) -> None:
    asked = build_wire(wire, ModelProfile(initiator="x-initiator"))
    told = []
    steered = user_says("a process ended", origin="process:proc_1")
    for messages in (HI, (*HI, CALL, SEEN), (*HI, CALL, SEEN, steered)):
        body(asked, messages)
        told.append(asked.headers["x-initiator"])
    assert told == ["user", "agent", "agent"]


@pytest.mark.parametrize(
    ("wire", "place"), [("chat", "messages"), ("responses", "instructions"), ("messages", "system")]
)
def test_a_model_that_does_not_know_its_name_is_told_it(wire: WireName, place: str) -> None:
    named = json.dumps(body(build_wire(wire, ModelProfile(says_name=True)), HI)[place])
    assert "Be brief.\\n\\nYou are the model m, served by acme." in named
    alone = json.dumps(body(build_wire(wire, ModelProfile(says_name=True)), HI, system="")[place])
    assert '"You are the model m' in alone


@pytest.mark.parametrize(
    ("wire", "field"),
    [("chat", "max_tokens"), ("responses", "max_output_tokens"), ("messages", "max_tokens")],
)
def test_the_usual_length_of_an_answer_is_asked_for_unless_another_is_wished(
    wire: WireName, field: str
) -> None:
    asked = build_wire(wire, ModelProfile(usual_output=32_000, max_output=64_000))
    assert body(asked, HI)[field] == 32_000
    wished = Prompt(system="", messages=HI, max_tokens=50)
    assert json.loads(asked.encode(wished, HI))[field] == 50
    capped = build_wire(wire, ModelProfile(usual_output=32_000, max_output=8_000))
    assert body(capped, HI)[field] == 8_000


@pytest.mark.parametrize(
    ("auth", "wire", "header"),
    [
        ("bearer", "chat", {"authorization": "Bearer k"}),
        ("x-api-key", "messages", {"x-api-key": "k"}),
        ("api-key", "chat", {"api-key": "k"}),
        ("api-key", "messages", {"x-api-key": "k"}),
    ],
)
def test_a_key_rides_in_the_header_of_its_vendor(
    auth: Auth, wire: WireName, header: dict[str, str]
) -> None:
    at = Endpoint(name="t", wire=wire, url="http://x", model="m", key="k", auth=auth)
    bare = request_headers(replace(at, key=""))
    assert {n: v for n, v in request_headers(at).items() if n not in bare} == header


def test_signatures_of_calls_come_back_with_their_calls() -> None:
    asked = build_wire("chat", ModelProfile(replay="extra_content"))
    signed = {"google": {"thought_signature": "abc"}}
    call = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{}"}}
    other = {"index": 1, "id": "c2", "function": {"name": "look", "arguments": "{}"}}
    reader = asked.reader(used_ids=set(), message_count=1)
    for calls in ([call | {"extra_content": signed}], [other]):
        chunk = {"choices": [{"delta": {"tool_calls": calls}, "finish_reason": None}]}
        list(reader.feed(SseEvent("", json.dumps(chunk).encode())))
    list(reader.feed(SseEvent("", b"[DONE]")))
    reply = reader.message()
    results = tuple(
        ToolResult(call_id=c.id, name=c.name, parts=(Text(text="x"),)) for c in reply.calls
    )
    messages = (*HI, reply, ToolMessage(results=results))
    calls_sent = body(asked, messages)["messages"][2]["tool_calls"]
    assert [c.get("extra_content") for c in calls_sent] == [signed, None]
    plain = body(build_wire("chat", ModelProfile()), messages)["messages"][2]
    assert "extra_content" not in json.dumps(plain)


HIGH = ("low", "medium", "high")


@pytest.mark.parametrize(
    ("style", "known", "effort", "fields"),
    [
        ("toggle", HIGH, "high", {"thinking": {"type": "enabled"}}),
        ("toggle", HIGH, "none", {"thinking": {"type": "disabled"}}),
        ("toggle", HIGH, "", {}),
        (
            "toggle_effort",
            ("high", "max"),
            "low",
            {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
        ),
        (
            "toggle_effort",
            ("high", "max"),
            "ultra",
            {"thinking": {"type": "enabled"}, "reasoning_effort": "max"},
        ),
        ("toggle_effort", ("high", "max"), "off", {"thinking": {"type": "disabled"}}),
        ("enable_thinking", HIGH, "low", {"enable_thinking": True}),
        ("enable_thinking", HIGH, "none", {"enable_thinking": False}),
        ("envelope_on", HIGH, "none", {}),
        ("envelope_on", HIGH, "xhigh", {"reasoning": {"enabled": True, "effort": "high"}}),
        ("envelope", (), "high", {"reasoning": {"enabled": True}}),
        ("flat", ("low", "high", "max"), "none", {"reasoning_effort": "low"}),
        ("flat", (), "high", {}),
        ("responses", (), "high", {"include": ["reasoning.encrypted_content"]}),
        (
            "google",
            HIGH,
            "minimal",
            {
                "extra_body": {
                    "google": {
                        "thinking_config": {"include_thoughts": True, "thinking_level": "low"}
                    }
                }
            },
        ),
        (
            "google",
            (),
            "none",
            {
                "extra_body": {
                    "google": {"thinking_config": {"include_thoughts": False, "thinking_budget": 0}}
                }
            },
        ),
    ],
)
def test_thought_is_asked_for_in_the_words_of_each_vendor(
    style: EffortStyle, known: tuple[str, ...], effort: str, fields: JsonObject
) -> None:
    assert effort_fields(ModelProfile(effort=style, efforts=known), effort) == fields


def test_kimi_gets_one_of_its_two_fields_and_never_both() -> None:
    kimi = shipped_catalogue().vendors["kimi-coding"]
    for model in ("kimi-k3", "kimi-k2.6", "kimi-k2.5", "kimi-k2.7-code"):
        for effort in ("none", "low", "high", "max"):
            profile = shipped_catalogue().endpoint(kimi, model).profile
            assert len(effort_fields(profile, effort)) <= 1


def test_a_faster_tier_is_not_booked_at_the_usual_price() -> None:
    openai, usage = shipped_catalogue().vendors["openai-api"], Usage(input=300_000, output=1000)
    usual = shipped_catalogue().endpoint(openai, "gpt-6.1-sol").profile.price
    fast = shipped_catalogue().endpoint(
        openai, "gpt-6.1-sol", options=RequestOptions(service_tier="priority")
    )
    assert usual is not None and fast.profile.price is not None
    assert fast.profile.price.cost(usage) == pytest.approx(2 * usual.cost(usage))


def test_wishes_go_only_where_they_are_understood() -> None:
    wishes = RequestOptions(
        routing={"sort": "price", "only": ()},
        response_cache_seconds=60,
        service_tier="flex",
        num_ctx=64_000,
        temperature=0.2,
        body={"seed": 7},
    )
    sent = {}
    for name in ("openrouter", "openai-api", "deepseek", "kimi-coding"):
        made = shipped_catalogue().endpoint(
            shipped_catalogue().vendors[name], "some-model", options=wishes
        )
        sent[name] = made.profile.extra
    assert sent == {
        "openrouter": {
            "provider": {"sort": "price"},
            "service_tier": "flex",
            "temperature": 0.2,
            "seed": 7,
        },
        "openai-api": {"service_tier": "flex", "temperature": 0.2, "seed": 7},
        "deepseek": {"temperature": 0.2, "seed": 7},
        "kimi-coding": {"temperature": 0.2, "seed": 7},
    }
    local = shipped_catalogue().endpoint(
        shipped_catalogue().vendors["custom"],
        "m",
        url="http://x/v1",
        server="ollama",
        options=wishes,
    )
    assert local.profile.extra["options"] == {"num_ctx": 64_000}


@pytest.mark.parametrize(
    ("vendor", "model"),
    [
        ("kimi-coding", "kimi-k3"),
        ("openai-api", "gpt-5.2"),
        ("anthropic", "claude-opus-5-5"),
        ("anthropic", "claude-sonnet-4-5"),
        ("openai-codex", "gpt-4.1"),
    ],
)
def test_models_with_a_temperature_of_their_own_are_sent_none(vendor: str, model: str) -> None:
    at = shipped_catalogue().endpoint(
        shipped_catalogue().vendors[vendor], model, key="k", options=RequestOptions(temperature=0.2)
    )
    wire = wire_format(at.wire)(at, at.profile, cache_ttl="5m", pictures=ImageLoader())
    assert "temperature" not in body(wire, HI)


def test_wishes_of_a_provider_cannot_be_lost_to_settings_of_its_model() -> None:
    router = shipped_catalogue().vendors["openrouter"]
    options = RequestOptions(routing={"sort": "price"})
    made = shipped_catalogue().endpoint(
        router, "m", options=options, overrides={"extra": {"top_k": 1}}
    )
    assert made.profile.extra == {"provider": {"sort": "price"}, "top_k": 1}
