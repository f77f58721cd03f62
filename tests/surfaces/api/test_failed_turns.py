"""A journal that fails in the middle of a turn: clients get an error and the session goes on."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, says
from tests.durability.mounts import mounted
from tests.durability.test_full_disk import fill
from tests.surfaces.api.serving import Serving, serving, sse

CHAT = "/v1/chat/completions"
SESSION = {"X-Hermes-Session-Id": "one"}
LONG = "word " * 100_000


def chat(text: str, *, stream: bool = False) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": text}], "stream": stream}


class Disk:
    """A small disk, full when the model answers the message "fill" for the first time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.filled = threading.Event()

    def answer(self, request: Request) -> Step:
        if request.last_text != "fill":
            return says(f"You said: {request.last_text}")
        if not self.filled.is_set():
            fill(self.path)
            self.filled.set()
        return says(LONG)

    def free(self) -> None:
        (self.path / "filler").unlink()


@contextmanager
def small_disk(tmp_path: Path, settings: str = "") -> Iterator[tuple[Serving, Disk]]:
    with mounted(tmp_path / "mount", "size=6m") as path:
        disk = Disk(path)
        with (
            ScriptedServer.in_thread(disk.answer, strict=False) as model,
            serving(path, model.url, settings=settings) as server,
        ):
            yield server, disk


def check_usable(client: httpx2.Client, disk: Disk) -> None:
    """With free space, the same session answers the next message."""
    disk.free()
    answer = client.post(CHAT, json=chat("two"), headers=SESSION).json()
    assert answer["choices"][0]["message"]["content"] == "You said: two"


def test_a_whole_answer_becomes_an_error(tmp_path: Path) -> None:
    with small_disk(tmp_path) as (server, disk), server.client(timeout=20) as client:
        failed = client.post(CHAT, json=chat("fill"), headers=SESSION)
        assert (failed.status_code, failed.json()["error"]["code"]) == (503, "disk_full")
        assert "free some space" in failed.json()["error"]["message"]
        check_usable(client, disk)


def test_a_stream_ends_with_the_error(tmp_path: Path) -> None:
    with small_disk(tmp_path) as (server, disk), server.client(timeout=20) as client:
        body = chat("fill", stream=True)
        with client.stream("POST", CHAT, json=body, headers=SESSION) as stream:
            *_, error, done = [data for _, _, data in sse(stream.iter_lines())]
        assert (json.loads(error)["error"]["code"], done) == ("disk_full", "[DONE]")
        check_usable(client, disk)


def test_a_run_fails_and_is_finished_when_there_is_space(tmp_path: Path) -> None:
    with small_disk(tmp_path) as (server, disk), server.client(timeout=20) as client:
        run = client.post("/v1/runs", json={"input": "fill", "session_id": "one"}).json()
        with client.stream("GET", f"/v1/runs/{run['run_id']}/events") as stream:
            *_, (_, name, data) = sse(stream.iter_lines())
        assert name == "run.failed" and "free some space" in data
        check_usable(client, disk)


def test_failed_turns_free_their_places(tmp_path: Path) -> None:
    settings = "api_server: {max_concurrent_runs: 2}\n"
    with small_disk(tmp_path, settings) as (server, disk), server.client(timeout=20) as client:
        for _ in range(3):
            assert client.post(CHAT, json=chat("fill")).status_code == 503
            while client.get("/health/detailed").json()["runs"]["active"]:
                time.sleep(0.01)
            disk.free()
            disk.filled.clear()
        assert client.post(CHAT, json=chat("more")).status_code == 200


@pytest.mark.slow
def test_a_lost_lease_ends_the_stream_and_the_session_goes_on(tmp_path: Path) -> None:
    held = threading.Event()

    def rule(request: Request) -> Step:
        if request.last_text == "wait":
            held.wait(60)
        return says(f"You said: {request.last_text}")

    with (
        ScriptedServer.in_thread(rule, strict=False) as model,
        serving(tmp_path, model.url) as server,
        server.client(timeout=60) as client,
    ):
        assert client.post(CHAT, json=chat("one"), headers=SESSION).status_code == 200
        other = Serving(server.home)
        run = client.post("/v1/runs", json={"input": "wait", "session_id": "one"}).json()
        events = f"/v1/runs/{run['run_id']}/events"
        with client.stream("GET", events) as stream:
            payload = sse(stream.iter_lines())
            assert next(payload)[1] == "run.started"
            server.signal(signal.SIGSTOP)
            time.sleep(32)
            held.set()
            other.up()
            try:
                with other.client() as visitor:
                    answer = visitor.post(CHAT, json=chat("mine"), headers=SESSION)
                    assert answer.status_code == 200
            finally:
                server.signal(signal.SIGCONT)
            names = [name for _, name, _ in payload]
            other.down()
        assert names[-1] == "run.failed"
        answer = client.post(CHAT, json=chat("again"), headers=SESSION).json()
        assert answer["choices"][0]["message"]["content"] == "You said: again"
