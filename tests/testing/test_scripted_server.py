"""The scripted server as an HTTP server: scripts, records, waiting, threads, the command."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from hermes.codec.values import JsonObject
from hermes.core.messages import Usage
from hermes.testing.faults import expecting, hangs, paced
from hermes.testing.observers import running_in_thread
from hermes.testing.request import Request, Violation
from hermes.testing.responder import Prices
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says

CHAT = "/v1/chat/completions"
HI: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
SOURCE = Path(__file__).parents[2] / "src"


def text_of(answer: httpx2.Response) -> str:
    content = answer.json()["choices"][0]["message"]["content"]
    assert isinstance(content, str)
    return content


async def test_steps_come_in_order_and_a_request_too_many_is_a_violation() -> None:
    async with (
        ScriptedServer([says("one"), says("two")]) as server,
        httpx2.AsyncClient(base_url=server.url, verify=False, timeout=60) as http,
    ):
        texts = [text_of(await http.post(CHAT, json=HI)) for _ in range(2)]
        third = await http.post(CHAT, json=HI)
    assert texts == ["one", "two"]
    assert third.status_code == 400
    assert server.violations == [Violation(n=3, wire="chat", reason="the script has only 2 steps")]


async def test_a_looping_script_repeats_its_last_step() -> None:
    async with (
        ScriptedServer([says("one"), says("two")], loop=True) as server,
        httpx2.AsyncClient(base_url=server.url, verify=False, timeout=60) as http,
    ):
        texts = [text_of(await http.post(CHAT, json=HI)) for _ in range(4)]
    assert texts == ["one", "two", "two", "two"]


async def test_steps_can_be_added_while_the_server_runs() -> None:
    async with (
        ScriptedServer() as server,
        httpx2.AsyncClient(base_url=server.url, verify=False, timeout=60) as http,
    ):
        server.add(says("late"), says("later"))
        assert text_of(await http.post(CHAT, json=HI)) == "late"
        assert server.steps_left == 1


async def test_a_rule_sees_the_request_and_decides() -> None:
    def obeys(request: Request) -> Step:
        if request.results:
            return says(f"It says {request.results[0].text}.")
        return calls("read_file", path=request.last_text)

    asked: list[JsonObject] = [{"role": "user", "content": "a.txt"}]
    async with (
        ScriptedServer(obeys) as server,
        httpx2.AsyncClient(base_url=server.url, verify=False, timeout=60) as http,
    ):
        first = await http.post(CHAT, json={"model": "m", "messages": asked})
        message = first.json()["choices"][0]["message"]
        made = message["tool_calls"][0]
        asked += [message, {"role": "tool", "tool_call_id": made["id"], "content": "hello"}]
        second = await http.post(CHAT, json={"model": "m", "messages": asked})
    assert json.loads(made["function"]["arguments"]) == {"path": "a.txt"}
    assert text_of(second) == "It says hello."


async def test_a_rule_may_wait_for_the_test() -> None:
    gate = asyncio.Event()

    async def waits(_request: Request) -> Step:
        await gate.wait()
        return says("at last")

    async with (
        ScriptedServer(waits) as server,
        httpx2.AsyncClient(base_url=server.url, verify=False, timeout=60) as http,
        asyncio.TaskGroup() as group,
    ):
        answer = group.create_task(http.post(CHAT, json=HI))
        await server.received.reaches(1)
        assert not answer.done()
        gate.set()
    assert text_of(answer.result()) == "at last"


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_rule_that_raises_is_told_to_the_test(is_async: bool) -> None:
    def breaks(_request: Request) -> Step:
        raise LookupError("no idea")

    async def breaks_later(request: Request) -> Step:
        return breaks(request)

    async with (
        ScriptedServer(breaks_later if is_async else breaks) as server,
        httpx2.AsyncClient(base_url=server.url, verify=False, timeout=60) as http,
    ):
        answer = await http.post(CHAT, json=HI)
    assert answer.status_code == 400
    assert [v.reason for v in server.violations] == ["the rule raised LookupError('no idea')"]


async def test_requests_are_kept_byte_for_byte() -> None:
    raw = b'{ "model":"m",\n "messages": [{"role":"user","content":"\\u00e9"}] }'
    async with (
        ScriptedServer([says("x")]) as server,
        httpx2.AsyncClient(verify=False, timeout=60) as http,
    ):
        await http.post(
            f"{server.url}/any/prefix/chat/completions?beta=1",
            content=raw,
            headers={"X-Title": "mine"},
        )
    (request,) = server.requests
    assert (request.n, request.wire, request.method) == (1, "chat", "POST")
    assert request.path == "/any/prefix/chat/completions?beta=1"
    assert request.headers["x-title"] == "mine"
    assert request.raw == raw
    assert request.body == {"model": "m", "messages": [{"role": "user", "content": "é"}]}
    assert (request.model, request.stream, request.last_text) == ("m", False, "é")


async def test_only_as_many_requests_are_kept_as_wanted() -> None:
    async with (
        ScriptedServer([says("x")], loop=True, keep=2) as server,
        httpx2.AsyncClient(base_url=server.url, verify=False, timeout=60) as http,
    ):
        for _ in range(5):
            await http.post(CHAT, json=HI)
    assert [request.n for request in server.requests] == [4, 5]
    assert server.received.count == 5


async def test_a_step_can_expect_a_part_of_the_request() -> None:
    step = expecting(says("x"), {"model": "m", "reasoning": {"effort": "high"}})
    async with (
        ScriptedServer([step], loop=True) as server,
        httpx2.AsyncClient(base_url=server.url, verify=False, timeout=60) as http,
    ):
        good = HI | {"reasoning": {"effort": "high", "enabled": True}}
        statuses = [(await http.post(CHAT, json=body)).status_code for body in (good, HI)]
    assert statuses == [200, 400]
    assert [v.reason for v in server.violations] == ["body.reasoning is missing"]


async def test_a_full_window_is_an_overflow_and_not_a_violation() -> None:
    async with (
        ScriptedServer([says("x")], window=500) as server,
        httpx2.AsyncClient(base_url=server.url, verify=False, timeout=60) as http,
    ):
        long = {"model": "m", "messages": [{"role": "user", "content": "a" * 3000}]}
        error = (await http.post(CHAT, json=long)).json()["error"]
        assert text_of(await http.post(CHAT, json=HI)) == "x"
    assert error["code"] == "context_length_exceeded"
    assert "500 tokens" in error["message"]
    assert server.violations == []


async def test_the_bill_is_exact_and_counts_answers_nobody_heard() -> None:
    usage = Usage(input=1000, output=10, cache_read=200, requests=1)
    steps = [says("a", usage=usage), hangs(says("b", usage=usage), after_chunks=1)]
    prices = Prices(input=0.1, output=0.7, cache_read=0.03)
    async with (
        ScriptedServer(steps, prices=prices) as server,
        httpx2.AsyncClient(base_url=server.url, verify=False, timeout=60) as http,
    ):
        told = (await http.post(CHAT, json=HI)).json()["usage"]["cost"]
        async with http.stream("POST", CHAT, json=HI | {"stream": True}):
            await server.received.reaches(2)
        await server.departed.reaches(1)
    assert server.bill.micros == 2 * Decimal("113.0")
    assert told == pytest.approx(113e-6)
    assert [charge.n for charge in server.bill.charges] == [1, 2]


async def test_other_paths_are_probes_and_may_have_pages() -> None:
    async with (
        ScriptedServer(pages={"/api/version": {"version": "0.9"}}) as server,
        httpx2.AsyncClient(base_url=server.url, verify=False, timeout=60) as http,
    ):
        answers = [await http.get(path) for path in ("/api/version", "/props")]
    assert answers[0].json() == {"version": "0.9"}
    assert answers[1].status_code == 404
    assert [probe.path for probe in server.probes] == ["/api/version", "/props"]
    assert server.requests == []


async def test_a_client_that_leaves_is_noticed() -> None:
    async with (
        ScriptedServer([hangs(), says("next")]) as server,
        httpx2.AsyncClient(base_url=server.url, verify=False, timeout=60) as http,
    ):
        asked = asyncio.create_task(http.post(CHAT, json=HI))
        await server.received.reaches(1)
        asked.cancel()
        await server.departed.reaches(1)
        assert text_of(await http.post(CHAT, json=HI)) == "next"


async def test_many_clients_are_served_at_once() -> None:
    step = paced(says("a b c d e f g h"), chunk=2, between_seconds=0.001)
    async with (
        ScriptedServer([step], loop=True) as server,
        httpx2.AsyncClient(base_url=server.url, verify=False, timeout=60) as http,
        asyncio.TaskGroup() as group,
    ):
        asked = [group.create_task(http.post(CHAT, json=HI | {"stream": True})) for _ in range(50)]
    assert all(task.result().text.endswith("data: [DONE]\n\n") for task in asked)
    assert len({request.n for request in server.requests}) == 50


def test_in_a_thread_it_serves_code_without_a_loop() -> None:
    with ScriptedServer.in_thread([says("one"), hangs()]) as server:
        assert text_of(httpx2.post(server.url + CHAT, json=HI, verify=False, timeout=60)) == "one"
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.post(
                server.url + CHAT, json=HI, timeout=httpx2.Timeout(10, read=0.2), verify=False
            )
        server.received.wait(2)
        server.departed.wait(1)
    with pytest.raises(httpx2.ConnectError):
        httpx2.post(server.url + CHAT, json=HI, verify=False, timeout=60)


def test_waiting_for_what_never_comes_ends() -> None:
    with (
        ScriptedServer.in_thread() as server,
        pytest.raises(TimeoutError, match="waited for 1, but counted only 0"),
    ):
        server.received.wait(1, timeout=0.01)


async def test_the_server_of_a_thread_can_be_waited_for_in_another_loop() -> None:
    with ScriptedServer.in_thread([says("x")]) as server:
        async with (
            httpx2.AsyncClient(base_url=server.url, verify=False, timeout=60) as http,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(server.received.reaches(1))
            group.create_task(http.post(CHAT, json=HI))
    assert server.received.count == 1


def test_a_taken_port_is_told_by_the_thread_form() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = ScriptedServer(port=port)
        with pytest.raises(OSError, match="in use"), running_in_thread(server):
            pass


async def test_no_connection_outlives_the_server_however_late_it_comes() -> None:
    for rounds in range(6):
        async with ScriptedServer() as server:
            address = urlsplit(server.url)
            assert address.hostname and address.port
            clients = [socket.create_connection((address.hostname, address.port)) for _ in range(5)]
            for _ in range(rounds):
                await asyncio.sleep(0)
        # Whatever was left open would be complained about here.
        gc.collect()
        for client in clients:
            client.settimeout(60)
            with suppress(ConnectionResetError):
                assert client.recv(1) == b""
            client.close()
