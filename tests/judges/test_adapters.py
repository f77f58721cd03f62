"""Our adapters hear in an answer what the vendors' own clients hear in it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hermes.codec.values import replace
from hermes.core.messages import StopReason
from hermes.core.prompt import Reply
from hermes.net.http import HttpClient
from hermes.providers.profile import WireName
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, costs, says
from tests.judges.clients import Heard
from tests.judges.test_clients import ALL, COUNTED, STEPS, STOPS, WITHOUT_HELPERS
from tests.providers.asking import ask, direct


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.aclose()


def of_reply(reply: Reply, wire: WireName) -> Heard:
    message, usage = reply.message, reply.usage
    return Heard(
        text=message.text,
        thought=message.reasoning,
        calls=tuple((call.name, call.arguments) for call in message.calls),
        usage=(usage.prompt, usage.cache_read, usage.output),
        stop=STOPS[message.stop][wire],
    )


async def compare(way: str, step: Step, http: HttpClient) -> None:
    wire: WireName = way.partition(" ")[0]  # type: ignore[assignment]
    async with ScriptedServer([costs(step, COUNTED)] * 2) as server:
        theirs = await ALL[way](server.url)
        asked = direct(wire, server.url, http, streams="streamed" in way)
        ours = (await ask(asked)).whole
    assert of_reply(ours, wire) == theirs
    assert replace(ours.usage, reasoning=0) == replace(COUNTED, reasoning=0)


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("way", [way for way in ALL if "async" in way])
async def test_the_same_is_heard(way: str, name: str, http: HttpClient) -> None:
    await compare(way, STEPS[name][0], http)


@pytest.mark.parametrize("stop", ["length", "filtered"])
@pytest.mark.parametrize("way", [way for way in WITHOUT_HELPERS if "async" in way])
async def test_the_same_early_end_is_heard(way: str, stop: StopReason, http: HttpClient) -> None:
    await compare(way, says("And so", stop=stop), http)
