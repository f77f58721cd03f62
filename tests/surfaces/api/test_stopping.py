"""Limits of the server: turns wait for capacity, and a server that stops starts no more."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import httpx2

from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, says
from tests.surfaces.api.serving import Serving, serving, sse

CHAT = "/v1/chat/completions"
HI = {"messages": [{"role": "user", "content": "hi"}]}


def draining(client: httpx2.Client, server: Serving) -> httpx2.Response:
    """The first answer of a server that has taken the signal."""
    server.signal(signal.SIGTERM)
    while (payload := client.get("/health/ready")).status_code == 200:
        pass
    return payload


def test_nothing_is_begun_while_the_server_stops_and_what_runs_ends(tmp_path: Path) -> None:
    held = threading.Event()

    def rule(request: Request) -> Step:
        held.wait(30)
        return says("the end")

    with (
        ScriptedServer.in_thread(rule, strict=False) as model,
        serving(tmp_path, model.url) as server,
        server.client() as client,
        server.client() as watcher,
    ):
        run_id = client.post("/v1/runs", json={"input": "wait"}).json()["run_id"]
        with watcher.stream("GET", f"/v1/runs/{run_id}/events") as stream:
            payload = sse(stream.iter_lines())
            assert next(payload)[1] == "run.started"
            assert draining(client, server).json() == {"status": "not_ready"}
            for path, body in ((CHAT, HI), ("/v1/runs", {"input": "more"})):
                late = client.post(path, json=body)
                assert (late.status_code, late.json()["error"]["type"]) == (503, "unavailable")
                assert late.headers["retry-after"] == "5"
            state = client.get("/health/detailed").json()
            assert (state["gateway"]["state"], state["runs"]["active"]) == ("draining", 1)
            held.set()
            names = [name for _, name, _ in payload]
        assert names[-1] == "run.completed"
        assert server.wait() == 0
        server.up()
        with server.client() as again:
            assert again.get(f"/v1/runs/{run_id}").json()["output"] == "the end"


def test_a_turn_waits_for_capacity_and_more_than_the_queue_holds_is_refused(
    tmp_path: Path,
) -> None:
    held = threading.Event()

    def rule(request: Request) -> Step:
        held.wait(30)
        return says(f"You said: {request.last_text}")

    settings = "api_server: {max_concurrent_runs: 1, max_queued_runs: 1}\n"
    with (
        ScriptedServer.in_thread(rule, strict=False) as model,
        serving(tmp_path, model.url, settings=settings) as server,
        server.client() as client,
    ):
        first, second = (client.post("/v1/runs", json={"input": each}) for each in ("1", "2"))
        assert second.json()["status"] == "queued"
        path = f"/v1/runs/{second.json()['run_id']}"
        assert client.get(path).json()["status"] == "queued"
        for late in (client.post("/v1/runs", json={"input": "3"}), client.post(CHAT, json=HI)):
            assert (late.status_code, late.json()["error"]["code"]) == (429, "too_many_runs")
            assert late.headers["retry-after"] == "5"
        counts = client.get("/health/detailed").json()["runs"]
        assert (counts["active"], counts["queued"]) == (1, 1)
        # A queued run is stored: it is answered although the server is killed.
        server.down()
        held.set()
        server.up()
        with server.client() as again:
            for made, text in ((first, "1"), (second, "2")):
                with again.stream("GET", f"/v1/runs/{made.json()['run_id']}/events") as stream:
                    names = [name for _, name, _ in sse(stream.iter_lines())]
                assert names[-1] == "run.completed"
                state = again.get(f"/v1/runs/{made.json()['run_id']}").json()
                assert state["output"] == f"You said: {text}"


def test_a_queued_run_that_is_stopped_is_cancelled_at_once(tmp_path: Path) -> None:
    held = threading.Event()

    def rule(request: Request) -> Step:
        held.wait(30)
        return says("the end")

    settings = "api_server: {max_concurrent_runs: 1, max_queued_runs: 1}\n"
    with (
        ScriptedServer.in_thread(rule, strict=False) as model,
        serving(tmp_path, model.url, settings=settings) as server,
        server.client() as client,
    ):
        try:
            client.post("/v1/runs", json={"input": "one"})
            run_id = client.post("/v1/runs", json={"input": "two"}).json()["run_id"]
            assert client.get(f"/v1/runs/{run_id}").json()["status"] == "queued"
            assert client.post(f"/v1/runs/{run_id}/stop").status_code == 202
            with client.stream("GET", f"/v1/runs/{run_id}/events") as stream:
                assert [name for _, name, _ in sse(stream.iter_lines())] == ["run.cancelled"]
            assert client.get(f"/v1/runs/{run_id}").json()["status"] == "cancelled"
        finally:
            held.set()
