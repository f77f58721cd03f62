"""Goals: a session goes on over turns and restarts until a condition holds."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hermes.app.app import App
from hermes.commands.registry import ShowText
from hermes.core.events import GoalChanged
from hermes.core.session import Session
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says
from tests.commands.conftest import Talk
from tests.delegation.family import Family, Script, family, until


def _is_judge(request: Request) -> bool:
    return request.messages[0].text.startswith("You check whether")


def _turns(request: Request) -> int:
    return sum(each.role == "user" for each in request.messages)


async def _goal(app: App, session: Session, line: str) -> str:
    place = Talk(app, session)
    shown = await place.registry.run(f"/goal {line}".strip(), place)
    assert isinstance(shown, ShowText)
    return shown.text


def _state(session: Session) -> str:
    return session.transcript.goal.state if session.transcript.goal else ""


def _chats(own: Family) -> list[Request]:
    return [each for each in own.server.requests if not _is_judge(each)]


async def test_a_goal_goes_on_until_its_command_succeeds(tmp_path: Path) -> None:
    def append(request: Request) -> Step:
        if request.results:
            return says("One more line.")
        return calls("terminal", command="echo line >> lines.txt")

    scripts: dict[str, Script] = {"Write": append}
    async with family(tmp_path, scripts) as own, own.session() as (app, session):
        app.start_session_tasks(session)
        text = 'Write three lines --check "test $(wc -l < lines.txt) -ge 3" --turns 9'
        assert "at most 9 turns" in await _goal(app, session, text)
        await until(lambda: _state(session) == "met")
        assert (own.project / "lines.txt").read_text() == "line\n" * 3
        assert session.transcript.goal is not None
        assert session.transcript.goal.turns == 3
        assert (await _goal(app, session, "status")).startswith("Goal reached (Write three lines)")


async def test_a_model_decides_and_may_find_the_goal_blocked(tmp_path: Path) -> None:
    verdicts = ["NO: only the first half is done.", "BLOCKED: the key is missing."]

    def judge(request: Request) -> Step:
        if _is_judge(request):
            return says(verdicts.pop(0))
        return says("I work.")

    async with family(tmp_path, {"": judge}) as own, own.session() as (app, session):
        app.start_session_tasks(session)
        await _goal(app, session, "Publish it")
        await until(lambda: _state(session) == "blocked")
        assert await _goal(app, session, "") == "Goal blocked (Publish it): the key is missing."
        second = _chats(own)[1].last_text
        assert "only the first half is done." in second
        assert "Goal: Publish it" in second


async def test_a_goal_ends_with_its_turns(tmp_path: Path) -> None:
    async with family(tmp_path, {"Try": [says("No.")] * 9}) as own, own.session() as (app, session):
        app.start_session_tasks(session)
        await _goal(app, session, "Try it --check false --turns 2")
        await until(lambda: _state(session) == "exhausted")
        assert len(_chats(own)) == 2
        assert (await app.archive.goals())[session.id].state == "exhausted"


async def test_a_person_stops_a_goal_and_resumes_it(tmp_path: Path) -> None:
    hang = asyncio.Event()

    async def slow(request: Request) -> Step:
        if not hang.is_set():
            await hang.wait()
        return says("Done.")

    async with family(tmp_path, {"": slow}) as own, own.session() as (app, session):
        app.start_session_tasks(session)
        await _goal(app, session, "Try it --check true")
        await until(lambda: bool(own.server.requests))
        assert await _goal(app, session, "stop") == "Goal stopped (Try it): You stopped it."
        await session.wait_until_idle()
        assert _state(session) == "stopped"
        hang.set()
        await _goal(app, session, "resume")
        await until(lambda: _state(session) == "met")


async def test_a_goal_goes_on_after_a_restart(tmp_path: Path) -> None:
    def append(request: Request) -> Step:
        if request.results:
            return says("One more line.")
        return calls("terminal", command="echo line >> lines.txt")

    async with family(tmp_path, {"Write": append}) as own:
        async with own.session() as (app, session):
            # Nobody follows the goal here, as if the process died after its first turn.
            await _goal(app, session, 'Write --check "test $(wc -l < lines.txt) -ge 3"')
            await session.wait_until_idle()
        async with own.session(resume=session.id) as (app, session):
            assert isinstance(session.transcript.goal, GoalChanged)
            app.start_session_tasks(session)
            await until(lambda: _state(session) == "met")
            assert session.transcript.goal.turns == 3
