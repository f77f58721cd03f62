"""The vendors' own clients are answered by the scripted server as by their vendors."""

from __future__ import annotations

import openai
import pytest

from hermes.core.messages import StopReason, Usage
from hermes.testing.faults import dripped, flawed, paced
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls_many, costs, says, thinks
from tests.judges.clients import (
    ANTHROPIC,
    ITEMS,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    Ask,
    Heard,
    anthropic_async,
    of_response,
    openai_async,
)

ALL = {**OPENAI_CHAT, **OPENAI_RESPONSES, **ANTHROPIC}
COUNTED = Usage(input=100, output=20, cache_read=40, cache_write=10, reasoning=5, requests=1)
WORDS = "Words, é and 😀, in several pieces, long enough for that."
LOOKS = (("look", {"at": "a"}), ("look", {"at": "b", "n": [1, {"x": None}]}))
STOPS = {
    "done": {"chat": "stop", "responses": "completed", "messages": "end_turn"},
    "calls": {"chat": "tool_calls", "responses": "completed", "messages": "tool_use"},
    "length": {"chat": "length", "responses": "max_output_tokens", "messages": "max_tokens"},
    "filtered": {"chat": "content_filter", "responses": "content_filter", "messages": "refusal"},
}
STEPS = {
    "text": (says(WORDS), Heard(text=WORDS)),
    "calls": (calls_many(*LOOKS), Heard(calls=LOOKS)),
    "text and calls": (calls_many(*LOOKS, text="I look."), Heard(text="I look.", calls=LOOKS)),
    "a call without arguments": (calls_many(("look", {})), Heard(calls=(("look", {}),))),
    "a thought": (thinks("Hm, well.", then=says("So.")), Heard(text="So.", thought="Hm, well.")),
    "a thought and a call": (
        thinks("Hm.", then=calls_many(LOOKS[0])),
        Heard(thought="Hm.", calls=LOOKS[:1]),
    ),
    "in small pieces": (paced(says(WORDS), chunk=1), Heard(text=WORDS)),
    "byte by byte": (dripped(says("é😀")), Heard(text="é😀")),
    "with comments between": (flawed(says(WORDS), "keep_alive", "crlf"), Heard(text=WORDS)),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("way", ALL)
async def test_the_client_hears_what_the_step_says(way: str, name: str) -> None:
    step, heard = STEPS[name]
    await hears(way, step, heard)


# The helpers of OpenAI's library around streams take an answer that ended early for an error.
WITHOUT_HELPERS = [way for way in ALL if way.startswith("messages") or "whole" in way]


@pytest.mark.parametrize("stop", ["length", "filtered"])
@pytest.mark.parametrize("way", WITHOUT_HELPERS)
async def test_the_client_learns_why_an_answer_ended_early(way: str, stop: StopReason) -> None:
    await hears(way, says("And so", stop=stop), Heard(text="And so"))


@pytest.mark.parametrize(
    ("stop", "error"),
    [
        ("length", openai.LengthFinishReasonError),
        ("filtered", openai.ContentFilterFinishReasonError),
    ],
)
async def test_the_chat_stream_ends_early_in_the_words_of_the_library(
    stop: StopReason, error: type[openai.OpenAIError]
) -> None:
    async with ScriptedServer([says("And so", stop=stop)]) as server:
        with pytest.raises(error):
            await OPENAI_CHAT["chat streamed async"](server.url)


@pytest.mark.parametrize("stop", ["length", "filtered"])
async def test_the_responses_stream_ends_early_with_the_reason(stop: StopReason) -> None:
    step = says("And so", stop=stop)
    async with ScriptedServer([step]) as server, openai_async(server.url) as client:
        stream = await client.responses.create(**ITEMS, stream=True)
        events = [event async for event in stream]
    assert events[-1].type == "response.incomplete"
    assert of_response(events[-1].response).stop == STOPS[stop]["responses"]
    assert of_response(events[-1].response).text == "And so"


async def hears(way: str, step: Step, heard: Heard) -> None:
    ask: Ask = ALL[way]
    async with ScriptedServer([costs(step, COUNTED)]) as server:
        found = await ask(server.url)
    wire = way.partition(" ")[0]
    assert found == heard._replace(usage=(150, 40, 20), stop=STOPS[step.stops][wire])
    assert server.violations == []


async def test_the_clients_list_the_models() -> None:
    async with ScriptedServer(models=["one", "two"]) as server:
        async with openai_async(server.url) as openly:
            assert [model.id async for model in openly.models.list()] == ["one", "two"]
        async with anthropic_async(server.url) as humanly:
            assert [model.id async for model in humanly.models.list()] == ["one", "two"]
