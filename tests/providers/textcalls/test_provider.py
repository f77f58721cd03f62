"""The wrapper among the others: what passes untouched, and real answers over HTTP."""

from __future__ import annotations

import random

import pytest

from hermes.core.errors import ConfigError
from hermes.core.messages import (
    AssistantMessage,
    Text,
    ToolCall,
    Usage,
    user_says,
)
from hermes.core.prompt import (
    CallNamed,
    Notice,
    Prompt,
    ReasoningDelta,
    Reply,
    Restarted,
    TextDelta,
)
from hermes.core.world import World
from hermes.net.http import HttpClient
from hermes.providers.completion import CompletingProvider
from hermes.providers.profile import WireName
from hermes.providers.retry import RetryingProvider
from hermes.providers.textcalls.provider import ALIASES, STYLES, TextCallProvider, trusted_styles
from hermes.testing.faults import cut, paced
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.providers.asking import WIRES, Listed, NapClock, answered, ask, direct, then
from tests.providers.textcalls.forms import FORMS, READ, TOOLS, WRITE, Form
from tests.providers.textcalls.hearing import PROMPT, calls_in, hear, reply_of, texts_in

HERMES = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>'


def native(text: str) -> Reply:
    call = ToolCall(id="call_x", name="status", arguments={})
    message = AssistantMessage(parts=(Text(text=text), call), stop="calls")
    return Reply(message=message, usage=Usage(), model="m", provider="p")


async def test_a_reply_with_calls_of_its_own_is_the_same_object() -> None:
    reply = native("On it. <tool_ca")
    inner = Listed([TextDelta(text="On it. <tool_ca"), CallNamed(name="status"), reply])
    heard = await ask(TextCallProvider(inner), PROMPT)
    assert heard.reply is reply
    assert heard.shown == "On it. <tool_ca"
    assert heard.deltas[-1] == CallNamed(name="status")


async def test_text_calls_beside_calls_of_its_own_stay_text() -> None:
    reply = native(HERMES)
    heard = await ask(TextCallProvider(Listed([TextDelta(text=HERMES + "\nX"), reply])), PROMPT)
    assert heard.reply is reply and heard.shown == HERMES + "\nX"


async def test_a_reply_of_words_is_the_same_object() -> None:
    reply = reply_of("Hello <b>you</b> [1] {x}")
    heard = await ask(TextCallProvider(Listed([TextDelta(text=reply.message.text), reply])), PROMPT)
    assert heard.reply is reply and heard.shown == "Hello <b>you</b> [1] {x}"


@pytest.mark.parametrize(
    "prompt",
    [
        Prompt(system="", messages=PROMPT.messages),
        Prompt(system="", messages=PROMPT.messages, tools=TOOLS, text_only=True),
    ],
    ids=["no tools", "words only"],
)
async def test_without_tools_on_offer_everything_passes(prompt: Prompt) -> None:
    heard = await hear([HERMES], prompt=prompt)
    assert calls_in(heard) == [] and heard.shown == HERMES


async def test_a_reply_that_comes_without_deltas_is_read_too() -> None:
    heard = await ask(TextCallProvider(Listed([reply_of("I look.\n" + HERMES)])), PROMPT)
    assert calls_in(heard) == [("read_file", {"path": "a"})]
    assert heard.shown == "I look.\n"


async def test_what_came_before_a_restart_does_not_count() -> None:
    inner = Listed(
        [
            TextDelta(text=HERMES[:30]),
            Restarted(),
            Notice(text="again"),
            ReasoningDelta(text="hm"),
            TextDelta(text="Hello."),
            reply_of("Hello."),
        ]
    )
    heard = await ask(TextCallProvider(inner), PROMPT)
    assert calls_in(heard) == [] and heard.shown == "Hello."


async def test_ids_are_new_in_the_conversation_and_the_same_each_time() -> None:
    first = await hear([HERMES, HERMES])
    again = await hear([HERMES, HERMES])
    assert first.whole == again.whole
    grown = then(PROMPT, *answered(first.whole), user_says("more"))
    later = await hear([HERMES], prompt=grown)
    ids = [call.id for reply in (first, later) for call in reply.whole.message.calls]
    assert len(set(ids)) == 3


async def test_ids_that_look_like_ours_are_not_taken_twice() -> None:
    call = ToolCall(id="call_3_0", name="status")
    reply = Reply(
        message=AssistantMessage(parts=(call,), stop="calls"), usage=Usage(), model="", provider=""
    )
    heard = await hear([HERMES], prompt=then(PROMPT, *answered(reply)))
    assert heard.whole.message.calls[0].id != "call_3_0"


def test_a_style_that_nobody_knows_is_named_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match="no tool call style 'latin'; available: auto, bare"):
        trusted_styles("latin")
    for alias in ALIASES:
        assert trusted_styles(alias) <= {style.name for style in STYLES}
    assert trusted_styles("auto") == frozenset()
    assert len({style.name for style in STYLES}) == len(STYLES) >= 30


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
async def test_over_http_with_a_thought_in_the_same_text(form: Form, http: HttpClient) -> None:
    thought = f"<think>I could {form.write([WRITE])} but no.</think>\n\n"
    text = thought + ("" if form.plain else "I look.\n") + form.write([READ])
    async with ScriptedServer([paced(says(text), chunk=3)], strict=False) as server:
        heard = await ask(TextCallProvider(direct("chat", server.url, http)), PROMPT)
    assert calls_in(heard) == [READ]
    assert heard.shown == ("" if form.plain else "I look.\n")
    assert "but no" in heard.whole.message.reasoning


@pytest.mark.parametrize("wire", WIRES)
async def test_in_every_wire_and_back_again(wire: WireName, http: HttpClient) -> None:
    """What was read as text is sent back as a call, and the server finds nothing wrong with it."""
    async with ScriptedServer([says("I look.\n" + HERMES), says("It says 42.")]) as server:
        provider = TextCallProvider(direct(wire, server.url, http))
        first = await ask(provider, PROMPT)
        second = await ask(provider, then(PROMPT, *answered(first.whole, "42")))
        assert texts_in(second) == ["It says 42."]
        assert server.violations == []


def stacked(url: str, http: HttpClient) -> CompletingProvider:
    world = World(clock=NapClock(), chance=random.Random(1))
    return CompletingProvider(
        TextCallProvider(RetryingProvider(direct("chat", url, http), world)), world
    )


async def test_a_call_that_was_cut_off_is_asked_for_again(http: HttpClient) -> None:
    steps: list[Step] = [
        cut(paced(says(HERMES), chunk=8), after_chunks=5),
        says(HERMES[:50], stop="length"),
        says(HERMES),
    ]
    async with ScriptedServer(steps) as server:
        heard = await ask(stacked(server.url, http), PROMPT)
        assert calls_in(heard) == [("read_file", {"path": "a"})]
        assert heard.shown == "" and server.steps_left == 0


async def test_native_calls_pass_the_whole_stack(http: HttpClient) -> None:
    async with ScriptedServer([calls("read_file", path="a")]) as server:
        heard = await ask(stacked(server.url, http), PROMPT)
        assert calls_in(heard) == [("read_file", {"path": "a"})]
