"""Requests that a wire allows pass; each thing that it forbids is refused and named."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.codec.values import JsonObject
from hermes.testing.request import RequestCall, RequestMessage, parse_messages
from hermes.testing.wires.draft import seal, sealer
from hermes.testing.wires.table import WIRES

WireName = Literal["chat", "responses", "messages"]
NAMES: tuple[WireName, ...] = ("chat", "responses", "messages")
VERSION = {"anthropic-version": "2023-06-01"}


def find_problems(
    wire: WireName, body: JsonObject, headers: dict[str, str] | None = None
) -> list[str]:
    return list(WIRES[wire].find_problems(body, VERSION if headers is None else headers))


# One conversation in the words of each wire


def chat_body(said: list[RequestMessage]) -> JsonObject:
    messages: list[JsonObject] = []
    for one in said:
        message: JsonObject = {"role": one.role, "content": one.text}
        if one.calls:
            message["content"] = one.text or None
            message["tool_calls"] = [
                {
                    "id": made.id,
                    "type": "function",
                    "function": {"name": made.name, "arguments": made.arguments},
                }
                for made in one.calls
            ]
        if one.call_id:
            message["tool_call_id"] = one.call_id
        messages.append(message)
    return {"model": "m", "messages": messages}


def responses_body(said: list[RequestMessage]) -> JsonObject:
    items: list[JsonObject] = []
    for one in said[1:]:
        if one.role == "tool":
            output = {"call_id": one.call_id, "output": one.text}
            items.append({"type": "function_call_output", **output})
            continue
        kind = "output_text" if one.role == "assistant" else "input_text"
        if one.text:
            content = [{"type": kind, "text": one.text}]
            items.append({"type": "message", "role": one.role, "content": content})
        items += [
            {"type": "function_call", "call_id": c.id, "name": c.name, "arguments": c.arguments}
            for c in one.calls
        ]
    return {"model": "m", "instructions": said[0].text, "input": items}


def messages_body(said: list[RequestMessage]) -> JsonObject:
    messages: list[JsonObject] = []
    for one in said[1:]:
        role = "assistant" if one.role == "assistant" else "user"
        blocks: list[JsonObject] = [{"type": "text", "text": one.text}] if one.text else []
        if one.role == "tool":
            blocks = [{"type": "tool_result", "tool_use_id": one.call_id, "content": one.text}]
        blocks += [
            {"type": "tool_use", "id": c.id, "name": c.name, "input": json.loads(c.arguments)}
            for c in one.calls
        ]
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    return {"model": "m", "max_tokens": 50, "system": said[0].text, "messages": messages}


ENCODERS: dict[WireName, Callable[[list[RequestMessage]], JsonObject]] = {
    "chat": chat_body,
    "responses": responses_body,
    "messages": messages_body,
}

words = st.text("abc äß☃", min_size=1, max_size=8).map(lambda text: f"{text}.")


@st.composite
def conversations(draw: st.DrawFn) -> list[RequestMessage]:
    """A system text, then turns of which the last one waits for the model."""
    said = [RequestMessage(role="system", text="Be kind.")]
    number = 0
    for turn in range(draw(st.integers(1, 4))):
        if turn:
            said.append(RequestMessage(role="assistant", text=draw(words)))
        said.append(RequestMessage(role="user", text=draw(words)))
        for _ in range(draw(st.integers(0, 2))):
            made = tuple(
                RequestCall(id=f"c{number + at}", name="look", arguments='{"at":"x"}')
                for at in range(draw(st.integers(1, 3)))
            )
            number += len(made)
            text = draw(st.sampled_from(("", "Wait.")))
            said.append(RequestMessage(role="assistant", text=text, calls=made))
            said += [RequestMessage(role="tool", text="found", call_id=one.id) for one in made]
    return said


@given(said=conversations(), wire=st.sampled_from(NAMES))
def test_every_proper_conversation_is_allowed(said: list[RequestMessage], wire: WireName) -> None:
    assert find_problems(wire, ENCODERS[wire](said)) == []


@given(said=conversations(), wire=st.sampled_from(NAMES), data=st.data())
def test_a_lost_result_or_a_lost_call_is_always_noticed(
    said: list[RequestMessage], wire: WireName, data: st.DataObject
) -> None:
    results = [at for at, one in enumerate(said) if one.role == "tool"]
    if not results:
        return
    at = data.draw(st.sampled_from(results))
    id = said[at].call_id
    without_result = said[:at] + said[at + 1 :]
    assert any(
        "has no result" in reason for reason in find_problems(wire, ENCODERS[wire](without_result))
    )
    without_call = [
        RequestMessage(
            role="assistant", text="Wait.", calls=tuple(c for c in one.calls if c.id != id)
        )
        if any(c.id == id for c in one.calls)
        else one
        for one in said
    ]
    reasons = find_problems(wire, ENCODERS[wire](without_call))
    assert any("answers no tool call" in reason for reason in reasons)


@given(said=conversations())
def test_the_conversation_reads_the_same_on_every_wire(said: list[RequestMessage]) -> None:
    def spoken(wire: WireName) -> list[tuple[str, str]]:
        found = parse_messages(wire, ENCODERS[wire](said))
        pairs = [(one.role, one.text or one.call_id) for one in found if one.text or one.call_id]
        calls = [(c.id, c.arguments) for one in said for c in one.calls]
        return pairs + calls

    assert spoken("chat") == spoken("responses") == spoken("messages")


# One thing wrong at a time

TOOL = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}
SAID = [
    RequestMessage(role="system", text="Be kind."),
    RequestMessage(role="user", text="Look."),
    RequestMessage(
        role="assistant",
        text="Yes.",
        calls=(
            RequestCall(id="c1", name="look", arguments='{"at":"x"}'),
            RequestCall(id="c2", name="look", arguments="{}"),
        ),
    ),
    RequestMessage(role="tool", text="one", call_id="c1"),
    RequestMessage(role="tool", text="two", call_id="c2"),
]

Change = Callable[[Any], object]


def at(*path: str | int, set: object) -> Change:
    """A change of one place in a body."""

    def change(body: Any) -> None:
        for key in path[:-1]:
            body = body[key]
        body[path[-1]] = set

    return change


def drop(*path: str | int) -> Change:
    def change(body: Any) -> None:
        for key in path[:-1]:
            body = body[key]
        del body[path[-1]]

    return change


def put(*path: str | int, item: object) -> Change:
    """A further item in front of a place in a list."""

    def change(body: Any) -> None:
        for key in path[:-1]:
            body = body[key]
        body.insert(path[-1], item)

    return change


SYSTEM = {"role": "system", "content": "x"}
SCHEMALESS = {"type": "function", "function": {"name": "a", "parameters": {}}}
LOOK = {"type": "function", "function": TOOL}
CALL = ("messages", 2, "tool_calls", 0)


def foreign_detail() -> JsonObject:
    text = "Hm."
    return {"type": "reasoning.text", "text": text, "signature": seal(text, sealer("chat", "n"))}


CHAT_WRONGS: list[tuple[Change, str]] = [
    (drop("model"), "model: a non-empty string is required"),
    (at("messages", set=[]), "messages: a non-empty list is required"),
    (at("messages", 1, set="hi"), "messages: every entry must be an object"),
    (at("messages", 1, "role", set="robot"), "messages[1]: unknown role 'robot'"),
    (put("messages", 2, item=SYSTEM), "messages[2]: a system message is only allowed at the begin"),
    (drop("messages", 1), "messages[1]: the first message after the system text must be from the"),
    (put("messages", 1, item={"role": "user", "content": "x"}), "messages[2]: two user messages"),
    (drop("messages", 4), "end of messages: the tool call 'c2' has no result"),
    (at("messages", 4, "tool_call_id", set="zz"), "the result 'zz' answers no tool call before it"),
    (at("messages", 4, "tool_call_id", set="c1"), "the tool call 'c1' is answered twice"),
    (drop("messages", 4, "tool_call_id"), "the result None answers no tool call before it"),
    (at(*CALL, "id", set=""), "messages[2].tool_calls[0]: a non-empty id is required"),
    (at(*CALL, "id", set="a b"), "the id 'a b' may only contain [a-zA-Z0-9_-]"),
    (at(*CALL, "id", set="c2"), "messages: the call id 'c2' occurs twice"),
    (at(*CALL, "id", set="c" * 41), "messages[2].tool_calls[0]: an id has at most 40 characters"),
    (at(*CALL, "type", set="tool"), "must be {id, type: 'function', function: …}"),
    (at(*CALL, "function", "name", set="a.b"), "'a.b' is not a tool name"),
    (at(*CALL, "function", "arguments", set={}), "arguments must be a string"),
    (at(*CALL, "function", "arguments", set="{"), "arguments are not a JSON object"),
    (at(*CALL, "function", "arguments", set="[]"), "arguments are not a JSON object"),
    (at("messages", 2, "tool_calls", set=[]), "tool_calls must be a non-empty list, or be left"),
    (
        at("messages", 1, "content", set=None),
        "messages[1]: content must be a string or a non-empty",
    ),
    (at("messages", 1, "content", set=" "), "messages[1]: content must not be empty"),
    (at("messages", 1, "content", set=[{"type": "text", "text": ""}]), "a text part needs text"),
    (at("messages", 2, "reasoning_details", set=[foreign_detail()]), "or is from another model"),
    (at("messages", 1, "content", set=[{"type": "image"}]), "cannot have a part of type 'image'"),
    (at("messages", 1, "content", set=[{"type": "text"}]), "messages[1]: a text part needs text"),
    (at("messages", 1, "content", set=[{"type": "image_url"}]), "needs image_url.url"),
    (put("messages", 5, item={"role": "assistant", "content": "x"}), "there is nothing to answer"),
    (at("tools", set=[]), "tools: must be a non-empty list, or be left out"),
    (at("tools", set=["look"]), "tools: every entry must be an object"),
    (at("tools", set=[TOOL]), "tools[0]: must be {type: 'function', function: …}"),
    (at("tools", set=[LOOK, LOOK]), "tools: the name 'look' occurs twice"),
    (at("tools", set=[SCHEMALESS]), "a JSON Schema of type 'object' is required"),
    (at("tool_choice", set="auto"), "tool_choice: only allowed together with tools"),
    (at("stream_options", set={}), "stream_options: only allowed when stream is true"),
    (at("max_tokens", set=0), "max_tokens: must be a whole number of at least 1"),
    (lambda b: b.update(max_tokens=1, max_completion_tokens=1), "cannot both be set"),
]

ANSWERED = {"role": "assistant", "content": "x"}
FOREIGN = seal("", sealer("messages", "m"))
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"}

RESPONSES_WRONGS: list[tuple[Change, str]] = [
    (drop("model"), "model: a non-empty string is required"),
    (at("input", set=""), "input: a non-empty string or list is required"),
    (at("input", set=["x"]), "input: every entry must be an object"),
    (at("instructions", set=["x"]), "instructions: must be a string"),
    (at("max_output_tokens", set=3), "max_output_tokens: must be a whole number of at least 16"),
    (at("input", 0, "role", set="robot"), "input[0]: unknown role 'robot'"),
    (at("input", 0, "type", set="talk"), "input[0]: unknown item type 'talk'"),
    (at("input", 0, "content", set=[]), "input[0]: content must be a string or a non-empty list"),
    (at("input", 0, "content", 0, "type", set="text"), "cannot have a part of type 'text'"),
    (drop("input", 0, "content", 0, "text"), "input[0]: a text part needs text"),
    (at("input", 0, "content", 0, "type", set="input_image"), "an image part needs image_url"),
    (at("input", 0, "id", set="x1"), "input[0].id: expected an id that begins with 'msg'"),
    (at("input", 2, "id", set="call_1"), "input[2].id: expected an id that begins with 'fc'"),
    (at("input", 2, "call_id", set="x" * 65), "input[2].call_id: at most 64 characters"),
    (at("input", 2, "call_id", set="c2"), "input: the call id 'c2' occurs twice"),
    (at("input", 2, "arguments", set={}), "input[2]: arguments must be a string"),
    (at("input", 4, "output", set=None), "input[4]: output must be a string or a non-empty list"),
    (at("input", 4, "call_id", set="zz"), "the result 'zz' answers no tool call before it"),
    (drop("input", 5), "end of input: the tool call 'c2' has no result"),
    (put("input", 6, item=ANSWERED), "there is nothing to answer"),
    (put("input", 4, item=THOUGHT), "input[4]: reasoning without the item that it led to"),
    (put("input", 2, item=THOUGHT | {"encrypted_content": ""}), "encrypted_content must not be"),
    (put("input", 2, item={"type": "reasoning"}), "input[2]: reasoning needs a summary list"),
    (put("input", 2, item=THOUGHT | {"encrypted_content": FOREIGN}), "or is from another model"),
    (at("input", 0, "content", 0, "text", set="\n"), "input[0]: a text part needs text"),
    (at("tools", set=[{"name": "a"}]), "tools[0]: a type is required"),
    (at("tools", set=[{"type": "function", "name": "a"}]), "a JSON Schema of type 'object' is"),
]

USE = ("messages", 1, "content", 1)
MARK = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
THINKING = {
    "type": "thinking",
    "thinking": "Hm.",
    "signature": seal("Hm.", sealer("messages", "m")),
}

BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4000}

MESSAGES_WRONGS: list[tuple[Change, str]] = [
    (drop("model"), "model: a non-empty string is required"),
    (drop("max_tokens"), "max_tokens: field required"),
    (at("max_tokens", set=-1), "max_tokens: must be a whole number of at least 1"),
    (at("system", set={}), "system: must be a string or a list of text blocks"),
    (at("system", set=[{"type": "text", "text": ""}]), "system[0]: must be a non-empty text block"),
    (at("messages", set=[]), "messages: a non-empty list is required"),
    (at("messages", 0, set=1), "messages: every entry must be an object"),
    (at("messages", 0, "role", set="system"), "messages.0: unknown role 'system'"),
    (drop("messages", 0), "messages.0: the first message must be from the user"),
    (put("messages", 0, item={"role": "user", "content": "x"}), "messages.1: roles must alternate"),
    (at("messages", 0, "content", set=""), "messages.0: content must not be empty"),
    (at("messages", 0, "content", set=[]), "messages.0: content must be a string or a non-empty"),
    (at("messages", 0, "content", 0, "text", set=" "), "text blocks must be non-empty"),
    (at("messages", 0, "content", 0, set={"type": "image"}), "an image needs a source"),
    (at("messages", 0, "content", 0, set=THINKING), "cannot have a block of type 'thinking'"),
    (at(*USE, "id", set="c:1"), "the id 'c:1' may only contain [a-zA-Z0-9_-]"),
    (at(*USE, "name", set=""), "'' is not a tool name"),
    (at(*USE, "input", set="{}"), "messages.1.content.1.input: must be an object"),
    (at(*USE, "id", set="c2"), "messages: the tool_use id 'c2' occurs twice"),
    (drop("messages", 2, "content", 1), "messages.2: the tool call 'c2' has no result"),
    (drop("messages", 2), "end of messages: the tool call 'c1' has no result"),
    (
        at("messages", 2, "content", 1, "tool_use_id", set="z"),
        "the result 'z' answers no tool call",
    ),
    (put("messages", 2, "content", 0, item={"type": "text", "text": "x"}), "must come before all"),
    (put("messages", 1, "content", 0, item=THINKING | {"signature": ""}), "and its signature"),
    (put("messages", 1, "content", 0, item=THINKING | {"thinking": "Ha."}), "does not match"),
    (put("messages", 1, "content", 9, item=THINKING), "messages.1: the last block must not be"),
    (lambda b: b.update(BUDGET), "the last assistant message must start with a thinking block"),
    (put("messages", 1, "content", 0, item={"type": "redacted_thinking"}), "needs its data"),
    (at("messages", 0, "content", set=[MARK] * 5), "at most 4 blocks may have cache_control"),
    (at("thinking", set={"type": "enabled", "budget_tokens": 9}), "must be at least 1024"),
    (at("thinking", set={"type": "enabled", "budget_tokens": 2048}), "less than max_tokens"),
    (lambda b: b.update(thinking={"type": "adaptive"}, temperature=0.5), "temperature: must be 1"),
    (at("tools", set=[{"name": "a", "input_schema": {}}]), "a JSON Schema of type 'object' is"),
    (put("messages", 3, item={"role": "assistant", "content": "x"}), "there is nothing to answer"),
]

CASES = [
    *(("chat", change, reason) for change, reason in CHAT_WRONGS),
    *(("responses", change, reason) for change, reason in RESPONSES_WRONGS),
    *(("messages", change, reason) for change, reason in MESSAGES_WRONGS),
]


@pytest.mark.parametrize(("wire", "change", "reason"), CASES, ids=[f"{c[0]}-{c[2]}" for c in CASES])
def test_one_wrong_thing_is_named(wire: WireName, change: Change, reason: str) -> None:
    body = deepcopy(ENCODERS[wire](SAID))
    assert find_problems(wire, body) == []
    change(body)
    assert any(reason in found for found in find_problems(wire, body)), find_problems(wire, body)


def test_the_messages_wire_wants_its_version() -> None:
    assert find_problems("messages", messages_body(SAID), {}) == [
        "anthropic-version: the header is required"
    ]


def test_a_rich_request_is_allowed() -> None:
    chat = chat_body(SAID) | {"tools": [LOOK], "tool_choice": "auto", "max_tokens": 9}
    chat |= {"stream": True, "stream_options": {"include_usage": True}}
    assert find_problems("chat", chat) == []
    responses = responses_body(SAID) | {"tools": [{"type": "function", **TOOL}]}
    responses["input"].insert(2, THOUGHT)
    assert find_problems("responses", responses) == []
    messages = messages_body(SAID) | {"tools": [{"name": "a", "input_schema": {"type": "object"}}]}
    messages["messages"][1]["content"].insert(0, THINKING)
    messages["messages"][0]["content"] = [MARK] * 4
    messages |= BUDGET
    assert find_problems("messages", messages) == []
