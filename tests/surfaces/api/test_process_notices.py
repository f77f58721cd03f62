"""Background processes that end after the turn that started them."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import httpx2

from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.surfaces.api.conftest import Model
from tests.surfaces.api.serving import Serving, serving


def test_the_end_of_a_background_process_is_a_turn_of_its_session(
    api: Serving, model: Model
) -> None:
    def rule(request: Request) -> Step:
        if "Background process" in request.last_text:
            return says("The build is done.")
        if request.results:
            return says("It is running.")
        return calls(
            "terminal", command="sleep 0.5; echo built", background=True, notify_on_complete=True
        )

    model.rule = rule
    path = "/api/sessions/builds"
    with api.client() as client:
        _check_notice(client, path)


def _check_notice(client: httpx2.Client, path: str) -> None:
    done = client.post(f"{path}/chat", json={"input": "build it"})
    assert done.json()["output"] == "It is running."
    end = time.monotonic() + 60
    while True:
        said = client.get(f"{path}/messages").json()["messages"]
        if said[-1]["text"] == "The build is done." and not client.get(path).json()["active_runs"]:
            break
        assert time.monotonic() < end, said
        time.sleep(0.05)
    notices = [each for each in said if "Background process" in each["text"]]
    assert len(notices) == 1
    assert "completed (exit 0)" in notices[0]["text"] and "built" in notices[0]["text"]
    while client.get("/health/detailed").json()["sessions"]["open"]:
        assert time.monotonic() < end, "the session is not closed"
        time.sleep(0.05)


def test_a_background_task_goes_on_after_a_kill_although_nobody_opens_its_session(
    tmp_path: Path,
) -> None:
    is_killed = threading.Event()

    def rule(request: Request) -> Step:
        text = request.last_text
        if "Background task" in text:
            return says("I have the report.")
        if text.startswith("Count"):
            # Until the kill, the task does not end.
            return says("Two.") if is_killed.is_set() else calls("terminal", command="sleep 60")
        if request.results:
            return says("Two." if "interrupted" in text else "It is running.")
        return calls("delegate_task", goal="Count the files", background=True)

    with (
        ScriptedServer.in_thread(rule, strict=False) as model,
        serving(tmp_path, model.url) as api,
    ):
        with api.client() as client:
            done = client.post("/api/sessions/counts/chat", json={"input": "count"})
            assert done.json()["output"] == "It is running."
        api.down()
        is_killed.set()
        api.up()
        end = time.monotonic() + 60
        with api.client() as client:
            while True:
                said = client.get("/api/sessions/counts/messages").json()["messages"]
                if said[-1]["text"] == "I have the report.":
                    break
                assert time.monotonic() < end, said
                time.sleep(0.1)
        assert sum("Background task" in each["text"] for each in said) == 1
