"""The whole way to a model, with all wrappers, against a server that misbehaves."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from hermes.codec.values import replace
from hermes.core.errors import ProviderError
from hermes.core.messages import AssistantMessage, Text
from hermes.core.ports import Provider
from hermes.core.prompt import Notice
from hermes.core.world import World
from hermes.net.http import HttpClient
from hermes.providers.pipeline import build_pipeline
from hermes.providers.profile import ModelProfile, WireName
from hermes.testing.faults import cut, fails_midway, flawed, paced
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import (
    calls,
    calls_cut_short,
    calls_raw,
    fails,
    overflows,
    says,
    says_nothing,
)
from tests.providers.asking import HI, WIRES, NapClock, answered, ask, endpoint, then

pytestmark = pytest.mark.parametrize("wire", WIRES)


def patient(
    wire: WireName, server: ScriptedServer, http: HttpClient, profile: ModelProfile | None = None
) -> tuple[Provider, NapClock]:
    clock = NapClock()
    world = World(clock=clock, chance=random.Random(1))
    return build_pipeline(endpoint(wire, server.url, profile), http=http, world=world), clock


async def test_troubles_are_overcome_without_a_word(wire: WireName, http: HttpClient) -> None:
    async with ScriptedServer([fails(500), fails(502), says("ok")]) as server:
        provider, clock = patient(wire, server, http)
        heard = await ask(provider)
        assert heard.deltas[0:1] != [] and not any(isinstance(d, Notice) for d in heard.deltas)
        assert heard.whole.message == AssistantMessage(parts=(Text(text="ok"),))
        assert len(clock.naps) == 2
        assert server.violations == []


async def test_a_rate_limit_is_waited_for(wire: WireName, http: HttpClient) -> None:
    async with ScriptedServer([fails(429, retry_after=30), says("ok")]) as server:
        provider, clock = patient(wire, server, http)
        heard = await ask(provider)
        assert any(isinstance(d, Notice) for d in heard.deltas)
        assert [round(nap) for nap in clock.naps] == [30]


async def test_an_overflow_is_for_the_caller_to_solve(wire: WireName, http: HttpClient) -> None:
    async with ScriptedServer([overflows(8_192)]) as server:
        provider, _ = patient(wire, server, http)
        with pytest.raises(ProviderError) as caught:
            await ask(provider)
        assert (caught.value.reason, caught.value.limit) == ("context_overflow", 8_192)
        assert len(server.requests) == 1


@pytest.mark.parametrize("how", ["cut", "error", "length"])
async def test_text_that_breaks_off_is_continued(
    wire: WireName, http: HttpClient, how: str
) -> None:
    words = "one two three four five six seven eight nine ten " * 4
    step = paced(says(words), chunk=10)
    broken = {
        "cut": cut(step, after_chunks=9),
        "error": fails_midway(step, after_chunks=9),
        "length": says("one two ", stop="length"),
    }[how]
    async with ScriptedServer([broken, says("and the rest")]) as server:
        provider, _ = patient(wire, server, http)
        heard = await ask(provider)
        text = heard.whole.message.text
        assert text == heard.shown
        assert text.startswith("one ") and text.endswith("and the rest")
        assert heard.whole.usage.requests == 2
        assert server.violations == []


async def test_a_call_that_is_cut_is_asked_for_again(wire: WireName, http: HttpClient) -> None:
    step = paced(calls("look", at="here and there and everywhere"), chunk=4)
    async with ScriptedServer([cut(step, after_chunks=6), step]) as server:
        provider, _ = patient(wire, server, http)
        heard = await ask(provider)
        (call,) = heard.whole.message.calls
        assert (call.arguments, call.broken) == ({"at": "here and there and everywhere"}, "")
        assert server.violations == []


async def test_truncated_and_unreadable_calls_are_never_whole(
    wire: WireName, http: HttpClient
) -> None:
    truncated = [calls_cut_short("look", '{"at": "ha')] * 5
    unreadable = [calls_raw("look", "{at: here}")] * 3
    async with ScriptedServer([*truncated, *unreadable, says("ok")]) as server:
        provider, _ = patient(wire, server, http)
        prompt = HI
        for requests in (5, 8):
            heard = await ask(provider, prompt)
            assert all(call.broken for call in heard.whole.message.calls)
            assert len(server.requests) == requests
            prompt = then(prompt, *answered(heard.whole))
        await ask(provider, prompt)
        assert server.violations == []


async def test_silence_is_asked_about_and_then_admitted(wire: WireName, http: HttpClient) -> None:
    async with ScriptedServer([says_nothing()] * 4) as server:
        provider, clock = patient(wire, server, http)
        heard = await ask(provider)
        assert heard.whole.message.text.startswith("(empty)")
        assert len(clock.naps) == 3
        assert server.violations == []


async def test_a_refused_way_of_asking_is_changed_for_the_session(
    wire: WireName, http: HttpClient
) -> None:
    refusal = fails(400, "Streaming is not supported for this model.")
    async with ScriptedServer([refusal, says("one"), says("two")]) as server:
        provider, clock = patient(wire, server, http)
        assert (await ask(provider)).shown == "one"
        assert (await ask(provider)).shown == "two"
        assert [request.stream for request in server.requests] == [True, False, False]
        assert clock.naps == []


async def test_a_server_that_streams_against_our_wish_is_understood(
    wire: WireName, http: HttpClient
) -> None:
    async with ScriptedServer([flawed(says("ok"), "no_end"), says("ok")]) as server:
        provider, _ = patient(wire, server, http)
        assert (await ask(provider)).shown == "ok"


async def test_cache_marks_can_be_switched_off(wire: WireName, http: HttpClient) -> None:
    profile = ModelProfile(marks="off" if wire == "responses" else "native", replay="none")
    async with ScriptedServer([says("ok")] * 2) as server:
        for marks in (profile, replace(profile, marks="off")):
            at = endpoint(wire, server.url, marks)
            await ask(build_pipeline(at, http=http, world=World(), cache_ttl="1h"))
        marked, plain = (request.raw for request in server.requests)
        assert (b'"ttl":"1h"' in marked) == (wire != "responses")
        assert b"cache_control" not in plain
        assert server.violations == []


async def test_a_long_session_is_asked_in_valid_requests_that_only_grow(
    wire: WireName, http: HttpClient
) -> None:
    steps = [calls("look", at=str(n)) for n in range(40)]
    async with ScriptedServer([*steps, says("done")]) as server:
        provider, _ = patient(wire, server, http)
        prompt = replace(HI, max_tokens=100)
        while True:
            heard = await ask(provider, prompt)
            if not heard.whole.message.calls:
                break
            prompt = then(prompt, *answered(heard.whole))
        assert server.violations == []
        raws = [request.raw for request in server.requests]
        for before, after in pairwise(raws):
            assert after.startswith(before[: before.rindex(b"]")].rstrip(b"]}"))
