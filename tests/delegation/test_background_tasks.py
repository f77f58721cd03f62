"""Child sessions that run while their owner goes on, and report once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hermes.app.app import App
from hermes.app.side_questions import OwedTask, in_background, mark_reported, owed_tasks
from hermes.commands.registry import ShowText
from hermes.core.events import MessageReceived
from hermes.core.session import Session
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says
from tests.commands.conftest import Talk
from tests.delegation.family import Script, delegate, delegated, family, say, until


async def _notices(app: App, session: Session) -> list[str]:
    """The internal messages of the session, as the journal has them."""
    records = await app.journal.read(session.id)
    found = [r.event for r in records if isinstance(r.event, MessageReceived)]
    return [each.message.text for each in found if each.message.origin != "user"]


async def _until_idle(app: App, session: Session, count: int) -> list[str]:
    async def is_done() -> bool:
        return len(await _notices(app, session)) >= count and not session.busy

    await until(is_done)
    return await _notices(app, session)


async def test_a_background_result_arrives_as_one_message(tmp_path: Path) -> None:
    scripts = {
        "Go": [delegate("Dig", background=True), says("I wait."), says("It found gold.")],
        "Dig": [calls("terminal", command="echo gold"), says("Gold.")],
    }
    async with family(tmp_path, scripts) as own, own.session() as (app, session):
        app.start_session_tasks(session)
        answer = delegated(await say(session, "Go"))
        assert answer["status"] == "dispatched"
        (log,) = answer["live_logs"]
        (notice,) = await _until_idle(app, session, 1)
        (child,) = answer["children"]
        assert notice == f"[Background task {child} completed: Dig]\nGold."
        assert session.transcript.messages[-1].text == "It found gold."  # type: ignore[union-attr]

        async def is_reported() -> bool:
            return (await app.archive.info(child)).end_reason == "reported"

        await until(is_reported)
        assert log.endswith("0.log")
    async with own.session(resume=session.id) as (app, session):
        app.start_session_tasks(session)
        await asyncio.sleep(0.3)
        assert len(await _notices(app, session)) == 1


async def test_a_suspended_task_continues_when_its_owner_is_opened_again(tmp_path: Path) -> None:
    release = asyncio.Event()
    calls_made: list[str] = []

    def dig(request: Request) -> Step:
        calls_made.append(request.last_text)
        if not request.results and len(request.messages) == 2:
            return calls("terminal", command="echo once >> effects.txt")
        return says("Gold.")

    async def slow(request: Request) -> Step:
        if request.results and not release.is_set():
            await release.wait()
        return dig(request)

    scripts: dict[str, Script] = {
        "Go": [delegate("Dig", background=True), says("I wait."), says("Gold, then.")],
        "Dig": slow,
    }
    async with family(tmp_path, scripts) as own:
        async with own.session() as (app, session):
            (child,) = delegated(await say(session, "Go"))["children"]
            effects = own.project / "effects.txt"
            await until(effects.exists)
        release.set()
        async with own.session(resume=session.id) as (app, session):
            app.start_session_tasks(session)
            (notice,) = await _until_idle(app, session, 1)
            assert notice == f"[Background task {child} completed: Dig]\nGold."
        assert effects.read_text() == "once\n"


async def test_five_run_at_once_and_the_sixth_waits(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def wait(_: Request) -> Step:
        await release.wait()
        return says("Done.")

    names = [f"W{n}" for n in range(6)]
    starts = [delegate(name, background=True) for name in names]
    scripts: dict[str, Script] = {"Go": [*starts, says("All started.")], "W": wait}
    async with family(tmp_path, scripts) as own, own.session() as (app, session):
        app.start_session_tasks(session)
        await say(session, "Go")
        await until(lambda: len(own.requests_of("W")) >= 5)
        await asyncio.sleep(0.2)
        assert len(own.requests_of("W")) == 5
        listed = await session.workspace.processes.list()
        assert [each.command for each in listed] == names
        release.set()
        await _until_idle(app, session, 6)
        assert len(own.requests_of("W")) == 6


async def test_a_stopped_task_reports_nothing(tmp_path: Path) -> None:
    scripts = {
        "Go": [delegate("Nap", background=True), says("I wait.")],
        "Nap": [calls("terminal", command="sleep 60"), says("Never.")],
    }
    async with family(tmp_path, scripts) as own, own.session() as (app, session):
        app.start_session_tasks(session)
        (child,) = delegated(await say(session, "Go"))["children"]
        await until(lambda: bool(own.requests_of("Nap")))
        await session.workspace.processes.kill(child)
        assert await session.workspace.processes.list() == ()
        assert (await app.archive.info(child)).end_reason == "stopped"
        assert await _notices(app, session) == []


async def test_a_background_task_of_a_person_continues_in_the_next_process(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def count(_: Request) -> Step:
        await release.wait()
        return says("Three files.")

    async with family(tmp_path, {"Count": count}) as own:
        async with own.session() as (app, session):
            await say(session, "Hello")
            work = asyncio.ensure_future(in_background(app, session, "Count", "bg_1"))
            await until(lambda: bool(own.requests_of("Count")))
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            assert await owed_tasks(app, session) == (OwedTask("bg_1", "Count"),)
        release.set()
        async with own.session(resume=session.id) as (app, session):
            (owed,) = await owed_tasks(app, session)
            done = await in_background(app, session, owed.text, owed.id)
            assert (done.answer, done.ended.reason) == ("Three files.", "done")  # type: ignore[union-attr]
            await mark_reported(app, owed.id)
            assert await owed_tasks(app, session) == ()
            assert (await app.archive.info("bg_1")).parent == session.id


async def test_a_stopped_task_of_a_person_does_not_continue(tmp_path: Path) -> None:
    async def never(_: Request) -> Step:
        await asyncio.Event().wait()
        return says("Never.")

    async with family(tmp_path, {"Count": never}) as own, own.session() as (app, session):
        await say(session, "Hello")
        work = asyncio.ensure_future(in_background(app, session, "Count", "bg_1"))
        await until(lambda: bool(own.requests_of("Count")))
        app.shared.stopped_tasks.add("bg_1")
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        assert await owed_tasks(app, session) == ()


async def test_agents_lists_running_children(tmp_path: Path) -> None:
    scripts = {
        "Go": [delegate("Nap", background=True), says("I wait.")],
        "Nap": [calls("terminal", command="sleep 60"), says("Never.")],
    }
    async with family(tmp_path, scripts) as own, own.session() as (app, session):
        place = Talk(app, session)
        assert await place.registry.run("/agents", place) == ShowText(text="Nothing is running.")
        (child,) = delegated(await say(session, "Go"))["children"]
        await until(lambda: app.background.delegations.runs[0].line == "terminal sleep 60")
        shown = await place.registry.run("/agents", place)
        assert isinstance(shown, ShowText)
        assert shown.text.startswith(child)
        assert shown.text.endswith("Nap  terminal sleep 60")
        stopped = await place.registry.run("/stop", place)
        assert stopped == ShowText(text=f"Stopped {child}: Nap")
