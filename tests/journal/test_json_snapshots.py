"""Sessions as JSON files beside the journal."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.config.home import Home
from hermes.core.commands import Say
from hermes.core.session_request import SessionRequest
from hermes.journal.json_snapshots import snapshot_file, write
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.models.test_title_writer import app_at, exchange, opened

WANTED = "sessions: {write_json_snapshots: true}\n"


def read(home: Path, session_id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(snapshot_file(Home(home), session_id).read_bytes())
    return found


async def test_a_session_is_a_file_after_its_turn(tmp_path: Path) -> None:
    home = tmp_path / "home"
    steps = (calls("todo", todos=[]), says("Nothing to do."))
    async with ScriptedServer(steps) as server, app_at(home, server, WANTED) as app:
        session = await opened(app, tmp_path)
        await exchange(session, "what is to be done?")
        await app.close_session(session)
        found = read(home, session.id)
    assert found["session_id"] == session.id
    assert (found["model"], found["provider"], found["platform"]) == ("m", "custom", "cli")
    assert found["base_url"] == f"{server.url}/v1"
    assert found["session_start"] <= found["last_updated"]
    assert "todo" in found["tools"]
    assert found["system_prompt"]
    roles = [message["role"] for message in found["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert found["message_count"] == 4
    assert found["messages"][1]["tool_calls"][0]["function"]["name"] == "todo"
    assert found["messages"][3]["content"] == "Nothing to do."
    assert stat.S_IMODE(snapshot_file(Home(home), session.id).stat().st_mode) == 0o600


async def test_it_grows_with_the_session_and_goes_on_after_a_resume(tmp_path: Path) -> None:
    home = tmp_path / "home"
    steps: tuple[Step, ...] = (says("one"), says("two"), says("three"))
    async with ScriptedServer(steps) as server:
        async with app_at(home, server, WANTED) as app:
            session = await opened(app, tmp_path)
            await exchange(session, "1")
            await exchange(session, "2")
            await app.close_session(session)
            begun = read(home, session.id)
            assert begun["message_count"] == 4
        async with app_at(home, server, WANTED) as app:
            opening = SessionRequest(
                source="cli",
                attended=True,
                cwd=str(tmp_path),
                context_files=False,
                resume=session.id,
            )
            again = await app.open(opening)
            await again.send(Say(text="3"))
            await again.wait_until_idle()
            await app.close_session(again)
            found = read(home, session.id)
    assert found["message_count"] == 6
    assert found["session_start"] == begun["session_start"]


async def test_secrets_are_masked(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with ScriptedServer([says("ok")]) as server, app_at(home, server, WANTED) as app:
        session = await opened(app, tmp_path)
        await exchange(session, "my key is sk-or-v1-0123456789abcdef0123456789abcdef")
        await app.close_session(session)
        text = snapshot_file(Home(home), session.id).read_text()
    assert "0123456789abcdef0123" not in text
    assert "my key is" in text


async def test_nothing_is_written_unless_it_is_wanted(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with ScriptedServer([says("ok")]) as server, app_at(home, server) as app:
        session = await opened(app, tmp_path)
        await exchange(session, "hi")
        await app.close_session(session)
    assert not list(home.glob("sessions/*.json"))


async def test_the_file_goes_with_its_session(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with ScriptedServer([says("ok")]) as server, app_at(home, server, WANTED) as app:
        session = await opened(app, tmp_path)
        await exchange(session, "hi")
        await app.close_session(session)
        assert snapshot_file(Home(home), session.id).exists()
        await app.archive.delete(session.id)
    assert not list(home.glob("sessions/*.json"))


async def test_a_place_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    home = tmp_path / "home"
    steps: tuple[Step, ...] = (says("one"), says("two"))
    async with ScriptedServer(steps) as server, app_at(home, server, WANTED) as app:
        session = await opened(app, tmp_path)
        snapshot_file(Home(home), session.id).mkdir(parents=True)
        await exchange(session, "1")
        await exchange(session, "2")
        assert len(session.transcript.messages) == 4
        await app.close_session(session)


@pytest.mark.parametrize(("later", "kept"), [(1, 3), (3, 3), (4, 4)])
def test_a_file_is_never_replaced_by_a_shorter_one(tmp_path: Path, later: int, kept: int) -> None:
    home = Home(tmp_path)
    write(home, {"session_id": "s", "message_count": 3})
    write(home, {"session_id": "s", "message_count": later})
    assert read(tmp_path, "s")["message_count"] == kept


def test_a_file_that_is_damaged_is_replaced(tmp_path: Path) -> None:
    home = Home(tmp_path)
    write(home, {"session_id": "s", "message_count": 3})
    snapshot_file(home, "s").write_bytes(b"{")
    write(home, {"session_id": "s", "message_count": 1})
    assert read(tmp_path, "s")["message_count"] == 1


@given(st.lists(st.text(), min_size=2, max_size=2, unique=True))
def test_no_id_leads_out_of_the_folder_and_none_is_another(ids: list[str]) -> None:
    home = Home(Path("/nowhere"))
    first, second = (snapshot_file(home, id) for id in ids)
    assert first.parent == second.parent == home.sessions
    assert first != second
    assert len(first.name.encode()) < 200
