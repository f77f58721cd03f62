from __future__ import annotations

import pytest
from hypothesis import given

from hermes.core.messages import (
    AssistantMessage,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
    user_says,
)
from hermes.core.prompt import Prompt
from hermes.providers.endpoint import Endpoint
from hermes.providers.normalization import (
    CONTINUE,
    EARLIER,
    UNAVAILABLE,
    ConversationNormalizer,
)
from hermes.providers.pipeline import wire_format
from hermes.providers.profile import ModelProfile, WireName
from hermes.providers.wire.format import ImageLoader
from hermes.testing.wires import chat, responses
from hermes.testing.wires import messages as messages_
from tests.providers.conversations import any_conversation, growing_conversation
from tests.providers.judges import judge

PROFILES = {
    "chat": ModelProfile(replay="reasoning_content"),
    "responses": ModelProfile(replay="sealed", effort="responses"),
    "messages": ModelProfile(replay="sealed", marks="native"),
}
WIRE_NAMES: tuple[WireName, ...] = ("chat", "responses", "messages")


def says(text: str) -> AssistantMessage:
    return AssistantMessage(parts=(Text(text=text),))


def call(id: str, name: str = "look") -> ToolCall:
    return ToolCall(id=id, name=name)


def result(id: str, text: str = "seen") -> ToolResult:
    return ToolResult(call_id=id, name="look", parts=(Text(text=text),))


def stub(id: str) -> ToolResult:
    return ToolResult(call_id=id, name="look", parts=(Text(text=UNAVAILABLE),), failed=True)


def calling(*calls: ToolCall) -> AssistantMessage:
    return AssistantMessage(parts=calls, stop="calls")


def answers(*results: ToolResult) -> ToolMessage:
    return ToolMessage(results=results)


HI = user_says("hi")


@pytest.mark.parametrize(
    ("given_messages", "expected"),
    [
        ((HI, user_says("there")), (user_says("hi\n\nthere"),)),
        (
            (HI, calling(call("a"), call("b")), answers(result("a"))),
            (HI, calling(call("a"), call("b")), answers(result("a"), stub("b"))),
        ),
        ((HI, answers(result("x"))), (HI,)),
        ((HI, says(""), user_says("there")), (user_says("hi\n\nthere"),)),
        ((HI, AssistantMessage(parts=(Reasoning(text="hm"),))), (HI,)),
        ((HI, UserMessage(parts=(Text(text="a\ud800"),))), (user_says("hi\n\na\ufffd"),)),
        (
            (HI, calling(call("a"), call("a")), answers(result("a", "1"), result("a", "2"))),
            (HI, calling(call("a"), call("a_2")), answers(result("a", "1"), result("a_2", "2"))),
        ),
        (
            (HI, *2 * (calling(call("a")), answers(result("a")))),
            (
                *(HI, calling(call("a")), answers(result("a"))),
                *(calling(call("a_2")), answers(result("a_2"))),
            ),
        ),
        (
            (HI, calling(call("a")), user_says("wait"), answers(result("a"))),
            (HI, calling(call("a")), answers(result("a")), user_says("wait")),
        ),
        (
            (HI, calling(call("a"), call("b")), answers(result("b")), answers(result("a"))),
            (HI, calling(call("a"), call("b")), answers(result("a"), result("b"))),
        ),
        ((HI, says("one"), says("two"), HI), (HI, AssistantMessage(
            parts=(Text(text="one\n\n"), Text(text="two"))), HI)),
        ((HI, says("so")), (HI, says("so"), user_says(CONTINUE))),
        ((says("so"), HI), (user_says(EARLIER), says("so"), HI)),
        ((), (user_says(EARLIER),)),
        ((user_says(" "),), (user_says(EARLIER),)),
    ],
)  # fmt: skip
def test_what_a_wire_would_refuse_is_mended(
    given_messages: tuple[Message, ...], expected: tuple[Message, ...]
) -> None:
    assert ConversationNormalizer().normalize(given_messages) == expected


def test_strange_ids_and_names_become_plain_together_with_their_results() -> None:
    made = ConversationNormalizer().normalize(
        (HI, calling(call("call|1", "functions.look")), answers(result("call|1")))
    )
    assert made[1:] == (calling(call("call_1", "functions_look")), answers(result("call_1")))


@pytest.mark.parametrize("wire", WIRE_NAMES)
def test_any_conversation_becomes_one_that_the_wire_accepts(wire: WireName) -> None:
    @given(any_conversation)
    def accepted(messages: tuple[Message, ...]) -> None:
        body = judge(wire, encoded(wire, messages))
        assert list(find_problems[wire](body, {"anthropic-version": "x"})) == []

    find_problems = {
        "chat": chat.find_problems,
        "responses": responses.find_problems,
        "messages": messages_.find_problems,
    }
    accepted()


@given(any_conversation)
def test_mending_twice_changes_nothing_more(messages: tuple[Message, ...]) -> None:
    once = ConversationNormalizer().normalize(messages)
    twice = ConversationNormalizer().normalize(once)
    assert all(a is b for a, b in zip(once, twice, strict=True))


@given(any_conversation)
def test_a_conversation_that_grows_is_mended_as_if_it_came_at_once(
    messages: tuple[Message, ...],
) -> None:
    grammar = ConversationNormalizer()
    for size in range(len(messages) + 1):
        assert grammar.normalize(messages[:size]) == ConversationNormalizer().normalize(
            messages[:size]
        )
    assert grammar.normalize(messages[:1]) == ConversationNormalizer().normalize(messages[:1])


@given(growing_conversation("chat"))
def test_valid_conversations_keep_their_very_objects(messages: tuple[Message, ...]) -> None:
    made = ConversationNormalizer().normalize(messages)
    assert len(made) == len(messages)
    assert all(a is b for a, b in zip(made, messages, strict=True))


def encoded(wire: WireName, messages: tuple[Message, ...]) -> bytes:
    endpoint = Endpoint(
        name="test", wire=wire, url="http://127.0.0.1", model="scripted", profile=PROFILES[wire]
    )
    kind = wire_format(wire)(endpoint, PROFILES[wire], cache_ttl="5m", pictures=ImageLoader())
    return kind.encode(
        Prompt(system="be brief", messages=messages), ConversationNormalizer().normalize(messages)
    )
