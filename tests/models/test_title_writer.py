"""A session gets a name after its first exchange, and only where somebody stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Retitle, Say
from hermes.core.events import ModelCalled, TitleChanged, TurnEnded
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.models.side_tasks import clean_title
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, fails, says


def app_at(home: Path, server: ScriptedServer, more: str = "") -> App:
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text(
        f"model: {{default: m, provider: custom, base_url: '{server.url}/v1'}}\n{more}"
    )
    return App(load(Home(home), env={}), env={}, world=World())


async def opened(app: App, tmp_path: Path, *, attended: bool = True) -> Session:
    return await app.open(
        SessionRequest(source="cli", attended=attended, cwd=str(tmp_path), context_files=False)
    )


async def exchange(session: Session, text: str) -> None:
    await session.send(Say(text=text))
    await session.wait_until_idle()


async def titled(app: App, session: Session, text: str) -> str:
    """One turn in a session that somebody attends, and the title that follows."""
    events = session.subscribe()
    app.start_session_tasks(session)
    await exchange(session, text)
    async for record in events:
        if isinstance(record.event, TitleChanged):
            return record.event.title
    return ""


async def test_the_first_exchange_gives_a_name_that_is_booked_as_such(tmp_path: Path) -> None:
    steps = (says("Milk is white."), says('"Colours of Milk."'))
    async with ScriptedServer(steps) as server, app_at(tmp_path / "home", server) as app:
        session = await opened(app, tmp_path)
        assert await titled(app, session, "what colour is milk?") == "Colours of Milk"
        assert session.transcript.title == "Colours of Milk"
        records = await app.journal.read(session.id)
        causes = [r.event.cause for r in records if isinstance(r.event, ModelCalled)]
        assert causes == ["chat", "title_generation"]
        assert "what colour is milk?" in str(server.requests[1].body)
        assert "tools" not in server.requests[1].body


async def test_where_nobody_stays_nobody_is_asked_for_a_name(tmp_path: Path) -> None:
    async with ScriptedServer([says("hi")]) as server, app_at(tmp_path / "home", server) as app:
        await exchange(await opened(app, tmp_path), "hi")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("more", "named"), [("auxiliary: {title_generation: {provider: none}}\n", False), ("", True)]
)
async def test_it_can_be_switched_off_and_a_name_that_is_there_stays(
    tmp_path: Path, more: str, named: bool
) -> None:
    steps: tuple[Step, ...] = (says("one"), says("two"))
    async with ScriptedServer(steps) as server, app_at(tmp_path / "home", server, more) as app:
        session = await opened(app, tmp_path)
        if named:
            await session.send(Retitle(title="Mine"))
        app.start_session_tasks(session)
        await exchange(session, "first")
        await exchange(session, "second")
        assert session.transcript.title == ("Mine" if named else "")
    assert len(server.requests) == 2


async def test_a_name_that_cannot_be_had_is_told_and_does_no_harm(tmp_path: Path) -> None:
    steps = (says("one"), fails(401), says("two"))
    async with ScriptedServer(steps) as server, app_at(tmp_path / "home", server) as app:
        session = await opened(app, tmp_path)
        app.start_session_tasks(session)
        events = session.subscribe()
        await exchange(session, "first")
        told = ""
        async for record in events:
            if "failed: " in (told := str(getattr(record.event, "text", ""))):
                break
        assert told.startswith("Title generation failed: custom (127.0.0.1, m) refused")
        await exchange(session, "second")
        records = await app.journal.read(session.id)
        ends = [r.event.reason for r in records if isinstance(r.event, TurnEnded)]
        assert ends == ["done", "done"]


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Colours of Milk", "Colours of Milk"),
        ('"Quoted."\n\nBecause …', "Quoted"),
        ("**Title: Bold**", "Title: Bold"),
        ("Title: Plain", "Plain"),
        ("", ""),
        ("x" * 200, "x" * 80),
    ],
)
def test_an_answer_becomes_a_title(said: str, title: str) -> None:
    assert clean_title(said) == title
