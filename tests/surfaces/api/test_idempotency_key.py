"""A request that is sent twice is carried out once, also if the process dies in between."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2

from hermes.testing.faults import hangs
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Pace, Step, says
from tests.surfaces.api.conftest import Model
from tests.surfaces.api.serving import Serving, serving

CHAT = "/v1/chat/completions"
HI = {"messages": [{"role": "user", "content": "hi"}]}


def test_the_same_request_gets_the_same_answer(api: Serving, model: Model) -> None:
    before = len(model.server.requests)
    with api.client(headers=api.headers | {"Idempotency-Key": "k1"}) as client:
        first, second = client.post(CHAT, json=HI), client.post(CHAT, json=HI)
        assert first.content == second.content
        assert "idempotency-replayed" not in first.headers
        assert second.headers["idempotency-replayed"] == "true"
        assert second.headers["x-hermes-session-id"] == first.headers["x-hermes-session-id"]
        other = client.post(CHAT, json=HI | {"user": "else"})
        assert (other.status_code, other.json()["error"]["code"]) == (
            409,
            "idempotency_key_conflict",
        )
        made = [client.post("/v1/runs", json={"input": "x"}).json()["run_id"] for _ in range(2)]
        assert made[0] == made[1]
    assert len(model.server.requests) <= before + 2


def test_a_key_must_be_visible_text(api: Serving) -> None:
    with api.client() as client:
        for key in ("", "a b", "x" * 256):
            done = client.post(CHAT, json=HI, headers={"Idempotency-Key": key})
            assert done.status_code == 400


async def test_two_at_the_same_time_are_one_run(api: Serving, model: Model) -> None:
    asked: list[int] = []

    def rule(request: Request) -> Step:
        asked.append(1)
        return Step(text="slowly", pace=Pace(first_seconds=0.5))

    model.rule = rule
    async with api.async_client(headers=api.headers | {"Idempotency-Key": "k2"}) as client:
        both = await asyncio.gather(client.post(CHAT, json=HI), client.post(CHAT, json=HI))
    assert both[0].content == both[1].content
    assert len(asked) == 1


async def test_two_streams_at_the_same_time_are_one_run(api: Serving, model: Model) -> None:
    asked: list[int] = []

    def rule(request: Request) -> Step:
        asked.append(1)
        return Step(text="slowly", pace=Pace(first_seconds=0.5))

    model.rule = rule
    async with api.async_client(headers=api.headers | {"Idempotency-Key": "k5"}) as client:
        body = HI | {"stream": True}
        both = await asyncio.gather(client.post(CHAT, json=body), client.post(CHAT, json=body))
    assert both[0].headers["x-hermes-run-id"] == both[1].headers["x-hermes-run-id"]
    assert both[0].content == both[1].content
    assert len(asked) == 1


def test_a_retry_after_a_kill_finds_the_turn(tmp_path: Path) -> None:
    """The first attempt dies while the model writes; the second finds its message received, and
    the session has it once."""

    steps = [hangs(says("all of it"), after_chunks=2)]

    def rule(request: Request) -> Step:
        return steps.pop() if steps else says("all of it")

    with (
        ScriptedServer.in_thread(rule, strict=False) as model,
        serving(tmp_path, model.url) as server,
    ):
        headers = {"Idempotency-Key": "k3"}

        async def first() -> None:
            async with server.async_client() as client:
                request = asyncio.ensure_future(client.post(CHAT, json=HI, headers=headers))
                await asyncio.to_thread(model.received.wait, 1)
                await asyncio.to_thread(server.down)
                await asyncio.gather(request, return_exceptions=True)
                assert isinstance(request.exception(), httpx2.TransportError)

        asyncio.run(first())
        server.up()
        with server.client() as client:
            done = client.post(CHAT, json=HI, headers=headers)
            assert done.json()["choices"][0]["message"]["content"] == "all of it"
            session = done.headers["x-hermes-session-id"]
            said = client.get(f"/api/sessions/{session}/messages").json()["messages"]
            assert [each["role"] for each in said] == ["user", "assistant"]
            assert len(client.get("/api/sessions").json()["sessions"]) == 1


def test_a_stored_answer_survives_a_restart(tmp_path: Path) -> None:
    with (
        ScriptedServer.in_thread([says("once")]) as model,
        serving(tmp_path, model.url) as server,
    ):
        headers = {"Idempotency-Key": "k4"}
        with server.client() as client:
            first = client.post(CHAT, json=HI, headers=headers)
        server.down()
        server.up()
        with server.client() as client:
            again = client.post(CHAT, json=HI, headers=headers)
        assert again.content == first.content
        assert again.headers["idempotency-replayed"] == "true"
