"""`hermes -z --json --ask`: the program that runs Hermes answers its questions."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, says
from tests.surfaces.cli.program import PROGRAM, Program

TOUCH = calls("write_file", path="../outside.txt", content="made")
AnswerTo = Callable[[dict[str, Any]], str]


@contextmanager
def running(program: Program, server: ScriptedServer) -> Iterator[subprocess.Popen[str]]:
    env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k", "HERMES_MODEL": "test"}
    with subprocess.Popen(
        [PROGRAM, "-z", "write it", "--json", "--ask"],
        cwd=program.work,
        env=program.env(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def play(process: subprocess.Popen[str], answer: AnswerTo) -> list[dict[str, Any]]:
    """Answer each approval; returns all events."""
    assert process.stdin is not None
    assert process.stdout is not None
    events = []
    for line in process.stdout:
        event = json.loads(line)
        events.append(event)
        if event["type"] == "approval_asked":
            process.stdin.write(answer(event))
            process.stdin.flush()
    return events


def test_the_caller_allows_an_effect(program: Program) -> None:
    with (
        ScriptedServer.in_thread((TOUCH, says("Done."))) as server,
        running(program, server) as process,
    ):
        events = play(
            process, lambda asked: json.dumps({"id": asked["id"], "answer": "once"}) + "\n"
        )
        assert process.wait() == 0
    assert (program.work.parent / "outside.txt").read_text() == "made"
    (answered,) = [event for event in events if event["type"] == "approval_answered"]
    assert (answered["choice"], answered["by"]) == ("once", "caller")


def test_the_reason_of_a_denial_reaches_the_model(program: Program) -> None:
    with ScriptedServer.in_thread((TOUCH, says("I see."))) as server:
        with running(program, server) as process:
            play(
                process,
                lambda asked: (
                    "no json\n"
                    + json.dumps({"id": "ask_nobody", "answer": "once"})
                    + "\n"
                    + json.dumps({"id": asked["id"], "answer": "deny", "reason": "not there"})
                    + "\n"
                ),
            )
            assert process.wait() == 0
            assert process.stderr is not None
            complaints = process.stderr.read().splitlines()
        assert "not there" in str(server.requests[-1].body)
    assert not (program.work.parent / "outside.txt").exists()
    assert [line.partition(" (")[0] for line in complaints] == [
        "An answer on stdin is invalid",
        "No open question has the id 'ask_nobody'; nothing was done.",
    ]


def test_a_caller_that_closes_stdin_denies(program: Program) -> None:
    with (
        ScriptedServer.in_thread((TOUCH, says("I see."))) as server,
        running(program, server) as process,
    ):
        assert process.stdin is not None
        process.stdin.close()
        assert process.stdout is not None
        events = [json.loads(line) for line in process.stdout]
        assert process.wait() == 0
    (answered,) = [event for event in events if event["type"] == "approval_answered"]
    assert answered["choice"] == "deny"
    assert not (program.work.parent / "outside.txt").exists()


def test_questions_need_events_to_be_seen(program: Program) -> None:
    result = program("-z", "hi", "--ask")
    assert result.code == 2
    assert "--ask needs -z and --json" in result.err
