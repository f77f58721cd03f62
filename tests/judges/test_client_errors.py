"""What goes wrong at the scripted server reaches the vendors' own clients in their own words."""

from __future__ import annotations

import anthropic
import httpx2
import openai
import pytest

from hermes.testing.faults import cut, fails_midway
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, drops, fails, overflows, says
from tests.judges.clients import (
    ANTHROPIC,
    BLOCKS,
    CHAT,
    ITEMS,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    anthropic_async,
    of_chat,
    of_message,
    openai_async,
)

OPENAI = {**OPENAI_CHAT, **OPENAI_RESPONSES}
ALL = {**OPENAI, **ANTHROPIC}
OPENAI_CLASSES: dict[int, type[openai.APIStatusError]] = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    403: openai.PermissionDeniedError,
    404: openai.NotFoundError,
    429: openai.RateLimitError,
    500: openai.InternalServerError,
    503: openai.InternalServerError,
    529: openai.InternalServerError,
}
ANTHROPIC_CLASSES: dict[int, type[anthropic.APIStatusError]] = {
    400: anthropic.BadRequestError,
    401: anthropic.AuthenticationError,
    403: anthropic.PermissionDeniedError,
    404: anthropic.NotFoundError,
    413: anthropic.ContentTooLargeError,
    429: anthropic.RateLimitError,
    500: anthropic.InternalServerError,
    503: anthropic.ServiceUnavailableError,
    529: anthropic.OverloadedError,
}
LONG = "Words that fill more than one event of the stream, by far."


@pytest.mark.parametrize("status", OPENAI_CLASSES)
@pytest.mark.parametrize("way", OPENAI)
async def test_a_status_is_the_class_of_openais_library(way: str, status: int) -> None:
    async with ScriptedServer([fails(status, "No such luck.", retry_after=7)]) as server:
        with pytest.raises(OPENAI_CLASSES[status]) as caught:
            await OPENAI[way](server.url)
    error = caught.value
    assert (error.status_code, error.response.headers["retry-after"]) == (status, "7")
    assert isinstance(error.body, dict) and error.body["message"] == "No such luck."


@pytest.mark.parametrize("status", ANTHROPIC_CLASSES)
@pytest.mark.parametrize("way", ANTHROPIC)
async def test_a_status_is_the_class_of_anthropics_library(way: str, status: int) -> None:
    async with ScriptedServer([fails(status, "No such luck.", retry_after=7)]) as server:
        with pytest.raises(ANTHROPIC_CLASSES[status]) as caught:
            await ANTHROPIC[way](server.url)
    error = caught.value
    assert (error.status_code, error.response.headers["retry-after"]) == (status, "7")
    assert isinstance(error.body, dict) and error.body["error"]["message"] == "No such luck."


@pytest.mark.parametrize("way", ALL)
async def test_an_overflow_is_a_bad_request(way: str) -> None:
    async with ScriptedServer([overflows(8192)]) as server:
        with pytest.raises((openai.BadRequestError, anthropic.BadRequestError), match="8192"):
            await ALL[way](server.url)


@pytest.mark.parametrize("way", ALL)
async def test_a_dropped_connection_is_a_connection_error(way: str) -> None:
    async with ScriptedServer([drops()]) as server:
        with pytest.raises((openai.APIConnectionError, anthropic.APIConnectionError)):
            await ALL[way](server.url)


STREAMED = {way: ask for way, ask in ALL.items() if "streamed" in way}


@pytest.mark.parametrize("status", [429, 500, 529])
@pytest.mark.parametrize("way", [way for way in STREAMED if not way.startswith("responses")])
async def test_an_error_inside_a_stream_is_told(way: str, status: int) -> None:
    step = fails_midway(says(LONG), after_chunks=4, status=status, message="Suddenly.")
    async with ScriptedServer([step]) as server:
        with pytest.raises((openai.APIError, anthropic.APIStatusError), match="Suddenly"):
            await STREAMED[way](server.url)


async def test_an_error_inside_a_responses_stream_is_its_last_event() -> None:
    step = fails_midway(says(LONG), after_chunks=4, status=429, message="Suddenly.")
    async with ScriptedServer([step]) as server, openai_async(server.url) as client:
        stream = await client.responses.create(**ITEMS, stream=True)
        last = [event async for event in stream][-1]
    assert last.type == "response.failed" and last.response.error is not None
    assert (last.response.error.code, last.response.error.message) == (
        "rate_limit_exceeded",
        "Suddenly.",
    )


@pytest.mark.parametrize("step", [says(LONG), calls("look", at=LONG)])
@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("way", STREAMED)
async def test_a_stream_that_is_cut_never_passes_for_whole(
    way: str, reset: bool, step: Step
) -> None:
    async with ScriptedServer([cut(step, after_chunks=4, reset=reset)]) as server:
        # Anthropic's library lets the error of the connection pass as it is.
        with pytest.raises((openai.APIConnectionError, httpx2.TransportError)):
            await STREAMED[way](server.url)


async def test_the_clients_ask_again_when_told_to_wait() -> None:
    steps = [fails(429, retry_after=0.01), fails(529), says("At last.")]
    async with ScriptedServer([*steps, *steps]) as server:
        async with openai_async(server.url) as client:
            patient = client.with_options(max_retries=2)
            assert of_chat(await patient.chat.completions.create(**CHAT)).text == "At last."
        async with anthropic_async(server.url) as other:
            stubborn = other.with_options(max_retries=2)
            assert of_message(await stubborn.messages.create(**BLOCKS)).text == "At last."
    assert server.received.count == 6
