"""How long a server of one's own is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hermes.codec.values import replace
from hermes.core.errors import ProviderError
from hermes.net.http import HttpClient, Timeouts
from hermes.providers.local_server import ALIVE_SECONDS, Activity, ActivityProbe, LocalStallPolicy
from hermes.providers.pipeline import EndpointProvider
from hermes.providers.retry import AdaptiveProfile
from hermes.testing.clock import VirtualClock
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Break, Pace, Step, fails, says
from tests.providers.asking import HI, ask, endpoint

MINUTES = 60.0
BUSY = {"/slots": [{"id": 0, "is_processing": True}]}
IDLE = {"/slots": [{"id": 0, "is_processing": False}]}
OLLAMA = {"/api/ps": {"models": [{"name": "scripted"}]}}


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(settle_seconds=0.05)


def patient(
    server: ScriptedServer, http: HttpClient, clock: VirtualClock, poll_seconds: float = 60
) -> EndpointProvider:
    at = endpoint("chat", server.url)
    patience = LocalStallPolicy(
        ActivityProbe(http, at), clock, host=at.host, first_seconds=0.01, poll_seconds=poll_seconds
    )
    timeouts = Timeouts(read=0.05, stale=0.05, stall_policy=patience)
    return EndpointProvider(
        at, http=http, clock=clock, adaptive=AdaptiveProfile(at.profile), timeouts=timeouts
    )


def slow(seconds: float, text: str = "at last") -> Step:
    """Nothing comes before so many seconds, not even a head."""
    return replace(says(text), pace=Pace(first_seconds=seconds))


@pytest.mark.parametrize("pages", [BUSY, OLLAMA, {}], ids=["llama.cpp", "ollama", "any"])
async def test_twenty_minutes_of_silence_are_waited_for(
    pages: Mapping[str, Any], http: HttpClient, clock: VirtualClock
) -> None:
    step = slow(20 * MINUTES)
    async with ScriptedServer([step], pages=pages, clock=clock) as server:
        heard = await clock.run_until(ask(patient(server, http, clock), HI))
        assert heard.whole.message.text == "at last"
        assert clock.monotonic() >= 20 * MINUTES
        assert len(server.requests) == 1, "the prompt was read once only"
        assert 19 <= len(server.probes) <= 100, "a question every minute"


async def test_a_server_that_works_is_waited_for_without_limit(
    http: HttpClient, clock: VirtualClock
) -> None:
    async with ScriptedServer([slow(5 * 3600)], pages=BUSY, clock=clock) as server:
        heard = await clock.run_until(ask(patient(server, http, clock, poll_seconds=900), HI))
        assert heard.whole.message.text == "at last"
        assert clock.monotonic() >= 5 * 3600 > ALIVE_SECONDS


async def test_silence_in_the_middle_of_an_answer_is_waited_for_too(
    http: HttpClient, clock: VirtualClock
) -> None:
    step = replace(says("one two three"), pace=Pace(chunk=4, between_seconds=10 * MINUTES))
    async with ScriptedServer([step], pages=BUSY, clock=clock) as server:
        heard = await clock.run_until(ask(patient(server, http, clock), HI))
        assert heard.whole.message.text == "one two three"


async def test_keep_alives_are_waited_for(http: HttpClient, clock: VirtualClock) -> None:
    step = replace(says("ok"), breaks=Break(how="hold", after_chunks=0, comment_seconds=100))
    async with ScriptedServer([step], pages=IDLE, clock=clock) as server:
        asking = asyncio.ensure_future(ask(patient(server, http, clock), HI))
        await clock.advance(3600)
        assert not asking.done()
        asking.cancel()
        await asyncio.wait((asking,))


async def test_a_server_that_lost_the_request_is_not_waited_for(
    http: HttpClient, clock: VirtualClock
) -> None:
    async with ScriptedServer([slow(3600)], pages=IDLE, clock=clock) as server:
        with pytest.raises(ProviderError, match="has lost the request") as caught:
            await clock.run_until(ask(patient(server, http, clock), HI))
        assert (caught.value.reason, caught.value.retryable) == ("timeout", True)
        assert clock.monotonic() < 6 * MINUTES


@asynccontextmanager
async def deaf_server() -> AsyncIterator[int]:
    """Takes one connection, says nothing, and is deaf to all others."""

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.close()
        await reader.read()
        writer.close()
        await writer.wait_closed()
        gone.set()

    gone = asyncio.Event()
    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
        async with asyncio.timeout(60):
            await gone.wait()
    finally:
        server.close()


async def test_a_server_that_no_longer_answers_is_not_waited_for(
    http: HttpClient, clock: VirtualClock
) -> None:
    async with deaf_server() as port:
        at = replace(endpoint("chat", "http://x"), url=f"http://127.0.0.1:{port}/v1")
        patience = LocalStallPolicy(
            ActivityProbe(http, at), clock, host=at.host, first_seconds=0.01
        )
        timeouts = Timeouts(stall_policy=patience)
        direct = EndpointProvider(
            at, http=http, clock=clock, adaptive=AdaptiveProfile(at.profile), timeouts=timeouts
        )
        with pytest.raises(ProviderError, match="no longer responds; check that it is running"):
            await clock.run_until(ask(direct, HI))
        assert clock.monotonic() <= 3 * MINUTES


async def test_a_closed_connection_is_noticed_at_once(
    http: HttpClient, clock: VirtualClock
) -> None:
    async with ScriptedServer([fails(0)], clock=clock) as server:
        with pytest.raises(ProviderError) as caught:
            await clock.run_until(ask(patient(server, http, clock), HI))
        assert caught.value.reason == "cut" and clock.monotonic() == 0


async def test_nobody_listening_is_noticed_at_once(http: HttpClient, clock: VirtualClock) -> None:
    async with ScriptedServer([], clock=clock) as server:
        direct = patient(server, http, clock)
    with pytest.raises(ProviderError, match="is the server running"):
        await clock.run_until(ask(direct, HI))


METRICS = (
    b"# HELP vllm:num_requests_running x\n"
    b'vllm:num_requests_running{engine="0",model_name="m"} %s\n'
    b'vllm:num_requests_waiting{engine="0",model_name="m"} 0.0\n'
)


@pytest.mark.parametrize(
    ("path", "status", "body", "sign"),
    [
        ("/slots", 200, b'[{"is_processing": false}, {"is_processing": true}]', "busy"),
        ("/slots", 200, b'[{"is_processing": false}]', "idle"),
        ("/slots", 200, b"<html>", "alive"),
        ("/metrics", 200, METRICS % b"2.0", "busy"),
        ("/metrics", 200, METRICS % b"0.0", "idle"),
        ("/health", 200, b'{"status":"ok"}', "alive"),
        ("/health", 503, b'{"error":{"message":"Loading model"}}', "busy"),
        ("/api/ps", 200, b'{"models":[]}', "alive"),
        ("/v1/models", 200, b"{}", "alive"),
        ("/v1/models", 401, b"{}", "alive"),
        ("/v1/models", 500, b"{}", "gone"),
        ("/other", 200, b"{}", "alive"),
    ],
)
async def test_signs_of_life(
    path: str, status: int, body: bytes, sign: Activity, http: HttpClient
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        code, answer = (status, body) if line == path else (404, b"")
        head = f"HTTP/1.1 {code} x\r\ncontent-length: {len(answer)}\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + answer)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    pulse = ActivityProbe(
        http, replace(endpoint("chat", "http://x"), url=f"http://127.0.0.1:{port}/v1")
    )
    assert await pulse.check() == sign
    assert await pulse.check() == sign
    server.close()
    await server.wait_closed()
