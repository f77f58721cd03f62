"""Runs: watched from any place, stopped, steered, approved, and alive after a kill."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Pace, Step, calls, says
from tests.surfaces.api.conftest import Model
from tests.surfaces.api.serving import Serving, serving, sse

SLOW = Step(text="".join(f"{n} " for n in range(60)), pace=Pace(chunk=4, between_seconds=0.03))


def uses_a_tool(request: Request) -> Step:
    if any(each["role"] == "tool" for each in request.body["messages"]):
        return says("two files")
    return calls("terminal", command="echo one two")


def begin(client: httpx2.Client, text: str, **body: Any) -> str:
    made = client.post("/v1/runs", json={"input": text, **body})
    assert made.status_code == 202, made.text
    return str(made.json()["run_id"])


def events(
    client: httpx2.Client, run_id: str, after: str = "", stop: Callable[[str], bool] | None = None
) -> list[tuple[str, str, dict[str, Any]]]:
    """Until the stream ends, or `stop` says so of the name of an event."""
    headers = {"Last-Event-ID": after} if after else {}
    found = []
    with client.stream("GET", f"/v1/runs/{run_id}/events", headers=headers) as stream:
        assert stream.status_code == 200
        for id, name, data in sse(stream.iter_lines()):
            found.append((id, name, json.loads(data)))
            if stop is not None and stop(name):
                break
    return found


def names(payload: list[tuple[str, str, dict[str, Any]]]) -> list[str]:
    return [data["event"] for data in payloads_of(payload)]


def payloads_of(payload: list[tuple[str, str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """What was sent, however many pieces the words came in."""
    found: list[dict[str, Any]] = []
    for _, name, data in payload:
        if name == "message.delta" and found and found[-1]["event"] == name:
            found[-1] = {**data, "delta": found[-1]["delta"] + data["delta"]}
        else:
            found.append(data)
    return found


def words(payload: list[tuple[str, str, dict[str, Any]]]) -> str:
    return "".join(data["delta"] for _, name, data in payload if name == "message.delta")


def test_a_run_is_watched_to_its_end(api: Serving, model: Model) -> None:
    model.rule = uses_a_tool
    with api.client() as client:
        run_id = begin(client, "look")
        payload = events(client, run_id)
        assert names(payload) == [
            "run.started",
            "tool.started",
            "tool.completed",
            "message.delta",
            "run.completed",
        ]
        assert payload[1][2]["preview"] == "echo one two"
        assert payload[-1][2]["output"] == "two files"
        state = client.get(f"/v1/runs/{run_id}").json()
        assert (state["status"], state["output"]) == ("completed", "two files")
        assert payloads_of(events(client, run_id)) == payloads_of(payload)


def test_a_run_is_read_on_from_every_event(api: Serving, model: Model) -> None:
    model.rule = uses_a_tool
    with api.client() as client:
        run_id = begin(client, "look again")
        payload = events(client, run_id)
        for place, (id, _, _) in enumerate(payload):
            assert payloads_of(events(client, run_id, after=id)) == payloads_of(
                payload[place + 1 :]
            )


def test_a_run_is_stopped_once(api: Serving, model: Model) -> None:
    model.rule = lambda request: SLOW
    with api.client() as client:
        run_id = begin(client, "count")
        events(client, run_id, stop=lambda name: name == "message.delta")
        assert client.post(f"/v1/runs/{run_id}/stop").status_code == 202
        assert names(events(client, run_id))[-1] == "run.cancelled"
        again = client.post(f"/v1/runs/{run_id}/stop")
        assert (again.status_code, again.json()["error"]["code"]) == (409, "run_not_active")


def test_a_run_waits_for_a_yes(api: Serving, model: Model) -> None:
    def rule(request: Request) -> Step:
        if any(each["role"] == "tool" for each in request.body["messages"]):
            return says("done")
        return calls("terminal", command="sudo -n true")

    model.rule = rule
    with api.client() as client:
        run_id = begin(client, "clean up")
        payload = events(client, run_id, stop=lambda name: name == "approval.request")
        asked = payload[-1][2]
        assert "sudo" in asked["command"]
        state = client.get(f"/v1/runs/{run_id}").json()
        assert state["status"] == "waiting_for_approval"
        assert state["pending_approval"]["approval_id"] == asked["approval_id"]
        path = f"/v1/runs/{run_id}/approval"
        assert state["pending_approval"]["expires_at"] == asked["expires_at"]
        assert asked["expires_at"] == asked["timestamp"] + asked["expires_seconds"]
        denied = client.post(path, json={"decision": "deny", "reason": "use the other disk"})
        assert denied.status_code == 200
        rest = events(client, run_id, after=payload[-1][0])
        assert names(rest)[0] == "approval.responded"
        assert (rest[0][2]["choice"], rest[0][2]["reason"]) == ("deny", "use the other disk")
        told_model = str(model.server.requests[-1].body["messages"][-1]["content"])
        assert "the person said no: use the other disk" in told_model
        none = client.post(path, json={"decision": "once"})
        assert none.status_code == 409


def test_a_run_goes_on_after_a_yes(api: Serving, model: Model, tmp_path: Path) -> None:
    wanted = tmp_path / "outside"

    def rule(request: Request) -> Step:
        if any(each["role"] == "tool" for each in request.body["messages"]):
            return says("done")
        return calls("write_file", path=str(wanted), content="yes\n")

    model.rule = rule
    with api.client() as client:
        run_id = begin(client, "write it")
        payload = events(client, run_id, stop=lambda name: name == "approval.request")
        asked = payload[-1][2]
        assert not wanted.exists()
        wrong = client.post(f"/v1/runs/{run_id}/approval", json={"decision": "perhaps"})
        assert wrong.status_code == 400
        yes = {"decision": "once", "approval_id": asked["approval_id"]}
        assert client.post(f"/v1/runs/{run_id}/approval", json=yes).status_code == 200
        rest = events(client, run_id, after=payload[-1][0])
    assert names(rest)[0] == "approval.responded"
    assert (rest[0][2]["choice"], rest[0][2]["by"]) == ("once", "api:local")
    assert rest[-1][2]["output"] == "done"
    assert wanted.read_text() == "yes\n"


def test_a_run_is_steered(api: Serving, model: Model) -> None:
    heard = threading.Event()

    def rule(request: Request) -> Step:
        said = [each for each in request.body["messages"] if each["role"] == "user"]
        if "in French" in str(said[-1]["content"]):
            heard.set()
            return says("bonjour")
        return calls("terminal", command="sleep 1.5")

    model.rule = rule
    with api.client() as client:
        run_id = begin(client, "greet")
        events(client, run_id, stop=lambda name: name == "tool.started")
        steered = client.post(f"/v1/runs/{run_id}/steer", json={"text": "in French"})
        assert steered.status_code == 202
        assert events(client, run_id)[-1][2]["output"] == "bonjour"
    assert heard.is_set()


def test_a_run_in_a_session_that_another_process_has_is_done_there(
    api: Serving, model: Model, tmp_path: Path
) -> None:
    """The session is opened by a second server of the same home, which is busy in it."""
    model.rule = lambda request: SLOW
    other = Serving(api.home)
    other.up()
    try:
        with api.client() as here, other.client() as there:
            first = begin(there, "count", session_id="two-doors")
            events(there, first, stop=lambda name: name == "message.delta")
            model.rule = lambda request: says("after that")
            second = begin(here, "and then", session_id="two-doors")
            assert events(here, second)[-1][2]["output"] == "after that"
            assert words(events(there, first)) == SLOW.text
    finally:
        other.down()


@pytest.mark.parametrize("streams", [8, pytest.param(64, marks=pytest.mark.slow)])
def test_streams_go_on_after_the_process_is_killed(tmp_path: Path, streams: int) -> None:
    """Every stream is cut in its middle, goes on after the restart at the very next character,
    and ends; no character comes twice."""

    def rule(request: Request) -> Step:
        name = str(request.body["messages"][-1]["content"])
        text = "".join(f"{name}:{n} " for n in range(50))
        return Step(text=text, pace=Pace(chunk=6, between_seconds=0.02))

    settings = "api_server: {max_concurrent_runs: 0}\n"
    with (
        ScriptedServer.in_thread(rule, strict=False, keep=1) as model,
        serving(tmp_path, model.url, settings=settings) as server,
    ):
        texts = asyncio.run(_cut_and_resumed(server, streams))
    expected = ["".join(f"run{k}:{n} " for n in range(50)) for k in range(streams)]
    assert texts == expected


async def _cut_and_resumed(server: Serving, streams: int) -> list[str]:
    heard: dict[int, list[tuple[str, str]]] = {k: [] for k in range(streams)}
    ids: dict[int, str] = {}
    halfway = asyncio.Event()

    async def listen(client: httpx2.AsyncClient, k: int, after: str = "") -> None:
        headers = {"Last-Event-ID": after} if after else {}
        path = f"/v1/runs/{ids[k]}/events"
        async with client.stream("GET", path, headers=headers) as stream:
            assert stream.status_code == 200
            id = name = ""
            async for line in stream.aiter_lines():
                if line.startswith("id: "):
                    id = line[4:]
                elif line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("data: "):
                    assert name != "message.restarted"
                    data = json.loads(line[6:])
                    heard[k].append((id, data.get("delta", "") if name == "message.delta" else ""))
                    if all(sum(len(t) for _, t in h) > 100 for h in heard.values()):
                        halfway.set()

    async def start(client: httpx2.AsyncClient, k: int) -> None:
        made = await client.post("/v1/runs", json={"input": f"run{k}"})
        assert made.status_code == 202, made.text
        ids[k] = made.json()["run_id"]

    limits = httpx2.Limits(max_connections=None)
    async with server.async_client(limits=limits) as client:
        await asyncio.gather(*(start(client, k) for k in range(streams)))
        listeners = [asyncio.ensure_future(listen(client, k)) for k in range(streams)]
        async with asyncio.timeout(60):
            await halfway.wait()
        await asyncio.to_thread(server.down)
        await asyncio.gather(*listeners, return_exceptions=True)
    assert all(sum(len(t) for _, t in h) > 0 for h in heard.values())
    await asyncio.to_thread(server.up)
    async with server.async_client(limits=limits) as client:
        await asyncio.gather(*(listen(client, k, after=heard[k][-1][0]) for k in range(streams)))
        for k in range(streams):
            state = (await client.get(f"/v1/runs/{ids[k]}")).json()
            assert state["status"] == "completed"
    for k in range(streams):
        order = [tuple(map(int, id.split(".")[:3])) for id, _ in heard[k]]
        assert order == sorted(order), "no id goes backwards"
        whole = [id for id, text in heard[k] if not text]
        assert len(whole) == len(set(whole)), "no event comes twice"
    return ["".join(text for _, text in heard[k]) for k in range(streams)]


def test_a_run_goes_on_after_a_kill_although_nobody_asks_for_it(tmp_path: Path) -> None:
    with (
        ScriptedServer.in_thread(lambda request: SLOW, strict=False) as model,
        serving(tmp_path, model.url) as server,
    ):
        with server.client() as client:
            run_id = begin(client, "count")
            events(client, run_id, stop=lambda name: name == "message.delta")
        server.down()
        server.up()
        with server.client() as client:
            end = time.monotonic() + 60
            while (state := client.get(f"/v1/runs/{run_id}").json())["status"] != "completed":
                assert time.monotonic() < end, state
                time.sleep(0.1)
            assert state["output"] == SLOW.text
