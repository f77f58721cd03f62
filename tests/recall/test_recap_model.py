"""Recaps of past sessions by a model for side work, as a session asks for them."""

from __future__ import annotations

from pathlib import Path

from hermes.app.app import App
from hermes.codec.json import encode
from hermes.core.commands import Say
from hermes.core.events import ModelCalled, ToolFinished
from hermes.core.session import Session
from hermes.journal.import_ import import_lines
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, fails, says
from tests.models.test_title_writer import app_at, opened

SEARCH = calls("session_search", query="Where is the ladder?", summarize=True)


async def looked_back(app: App, tmp_path: Path) -> tuple[Session, str]:
    """A session that searches, and what its tool said."""
    line = {"session": "past", "at": 1e9, "role": "user", "text": "The ladder is in the shed."}
    await import_lines(app.journal, [encode(line) + b"\n"])
    session = await opened(app, tmp_path)
    await session.send(Say(text="Where is the ladder?"))
    await session.wait_until_idle()
    records = await app.journal.read(session.id)
    (result,) = [r.event.result for r in records if isinstance(r.event, ToolFinished)]
    return session, result.text


async def causes(app: App, session: Session) -> list[str]:
    records = await app.journal.read(session.id)
    return [r.event.cause for r in records if isinstance(r.event, ModelCalled)]


async def test_a_recap_is_asked_of_a_model_and_booked_under_its_task(tmp_path: Path) -> None:
    steps = (SEARCH, says("It stands in the shed."), says("In the shed."))
    async with ScriptedServer(steps) as server, app_at(tmp_path / "home", server) as app:
        session, told = await looked_back(app, tmp_path)
        assert "\n= It stands in the shed.\n2> The ladder is in the shed.\n" in told
        assert await causes(app, session) == ["chat", "session_search", "chat"]
        body = server.requests[1].body
        assert "tools" not in body
        assert "User: The ladder is in the shed." in str(body)


async def test_a_model_that_fails_leaves_the_lines(tmp_path: Path) -> None:
    steps: tuple[Step, ...] = (SEARCH, fails(401), says("In the shed."))
    async with ScriptedServer(steps) as server, app_at(tmp_path / "home", server) as app:
        _, told = await looked_back(app, tmp_path)
        assert "\n2> The ladder is in the shed.\n" in told
        assert "\nNo recap: " in told


async def test_the_settings_say_who_recaps_and_whether_it_is_usual(tmp_path: Path) -> None:
    usual = calls("session_search", query="Where is the ladder?")
    async with (
        ScriptedServer([says("It stands in the shed.")]) as small,
        ScriptedServer([usual, says("In the shed.")]) as server,
    ):
        more = (
            "session_search: {summarize: true}\n"
            f"auxiliary: {{session_search: {{base_url: '{small.url}/v1', model: tiny}}}}\n"
        )
        async with app_at(tmp_path / "home", server, more) as app:
            _, told = await looked_back(app, tmp_path)
    assert "\n= It stands in the shed.\n" in told
    assert [request.body["model"] for request in small.requests] == ["tiny"]
