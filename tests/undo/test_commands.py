"""`hermes undo`, `hermes checkpoints` and `/rollback`, on a session whose changes are recorded."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from hermes.app.app import App
from hermes.commands import rollback
from hermes.commands.registry import CommandRegistry, ShowText
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.effects import RunCommand
from hermes.core.errors import HermesError
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.surfaces.cli.commands import undo
from hermes.surfaces.cli.commands import undo as checkpoints
from hermes.undo.workspace import UndoableWorkspace, UndoService
from hermes.workspaces.local import LocalWorkspace
from tests.undo.conftest import Agent


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "hermes"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    agent = Agent(tmp_path, store=tmp_path / "hermes" / "checkpoints")
    agent.fill({"a": "one\n", "b": "b\n"})
    asyncio.run(_work(agent))
    monkeypatch.chdir(agent.root)
    return agent


async def _work(agent: Agent) -> None:
    await agent.did("echo two > a")
    agent.turn = "turn_2"
    await agent.did("rm b; mkdir d; echo x > d/x")
    await agent.close()


def call(command: click.Command, *arguments: str) -> str:
    found = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.output


def as_json(command: click.Command, *arguments: str) -> Any:
    return json.loads(call(command, *arguments, "--json"))


def test_the_list_shows_number_age_counts_and_reason(place: Agent) -> None:
    first, second = call(undo.undo_command, "--list").splitlines()
    assert first.split() == ["1", "now", "+2", "~0", "-1", *"rm b; mkdir d; echo x > d/x".split()]
    assert second.split() == ["2", "now", "+0", "~1", "-0", *"echo two > a".split()]


def test_a_preview_changes_nothing(place: Agent) -> None:
    before = place.picture()
    text = call(undo.undo_command, "--preview")
    assert text.splitlines() == [
        "would restore  b",
        "would delete   d",
        "would delete   d/x",
    ]
    assert place.picture() == before
    found = as_json(undo.undo_command, "--preview")
    assert found["deleted"] == [f"{place.root}/d", f"{place.root}/d/x"]
    assert found["preview"] is True


def test_undo_and_undo_again(place: Agent) -> None:
    done = as_json(undo.undo_command)
    assert done["restored"] == [f"{place.root}/b"]
    assert done["turns"] == ["turn_2"]
    assert (place.root / "b").read_text() == "b\n"
    assert call(undo.undo_command).splitlines()[0] == "1 restored, 0 deleted, 0 kept."
    assert (place.root / "a").read_text() == "one\n"
    with pytest.raises(HermesError, match="nothing to undo"):
        call(undo.undo_command)


def test_turns_of_other_sessions_are_offered(place: Agent, tmp_path: Path) -> None:
    other = Agent(tmp_path, session="s2", store=tmp_path / "hermes" / "checkpoints")

    async def work() -> None:
        await other.did("echo later > e")
        await other.close()

    asyncio.run(work())
    *_, offer = call(undo.undo_command, "--list").splitlines()
    assert "`hermes undo --session s1` undoes rm b; mkdir d" in offer
    call(undo.undo_command)
    assert not (place.root / "e").exists()
    with pytest.raises(HermesError, match="`hermes undo --session s1` undoes rm b") as raised:
        call(undo.undo_command)
    assert "This session has nothing to undo." in str(raised.value)


def test_undo_by_number_turn_and_file(place: Agent) -> None:
    call(undo.undo_command, "--file", "b")
    assert (place.root / "b").exists() and (place.root / "d").exists()
    call(undo.undo_command, "--to", "turn_1")
    assert place.picture(times=False).keys() == {"a", "b"}
    assert (place.root / "a").read_text() == "one\n"
    call(undo.undo_command, "1")
    assert (place.root / "a").read_text() == "two\n"


def test_what_is_asked_for_and_is_not_there(place: Agent) -> None:
    for arguments in (("9",), ("--to", "turn_9"), ("1", "--to", "turn_1"), ("--file", "zzz")):
        with pytest.raises(HermesError):
            call(undo.undo_command, *arguments)


def test_the_store_can_be_looked_at_and_emptied(place: Agent) -> None:
    found = as_json(checkpoints.checkpoints_command, "status")
    assert (found["checkpoints"], found["sessions"]) == (2, 1)
    assert found["projects"] == [str(place.root)]
    assert as_json(checkpoints.checkpoints_command, "prune")["turns"] == 0
    assert as_json(checkpoints.checkpoints_command, "clear", "-f")["turns"] == 2
    assert as_json(checkpoints.checkpoints_command, "status")["contents"] == 0


class Talk:
    def __init__(self, app: App, session: Session) -> None:
        self.app = app
        self.session = session
        self.registry = CommandRegistry(rollback.ROLLBACK_COMMANDS, "cli")
        self.background_work = None

    async def run(self, line: str) -> str:
        outcome = await self.registry.run(line, self)
        assert isinstance(outcome, ShowText)
        return outcome.text


async def test_rollback_lists_shows_and_goes_back(tmp_path: Path, outside: Path) -> None:
    root = outside
    (root / "a").write_text("one\n")
    flags = {"model.provider": "offline", "checkpoints.enabled": True}
    config = load(Home(tmp_path / "hermes"), flags=flags, env={})
    async with App(config, env={}, world=World()) as app:
        session = await app.open(SessionRequest(source="cli", attended=False, cwd=str(root)))
        talk = Talk(app, session)
        assert await talk.run("/rollback") == "This session has changed no files."
        await session.send(Say(text="hello"))
        await session.wait_until_idle()
        turn = [r.turn_id for r in await app.archive.records(session.id) if r.turn_id][-1]
        workspace = UndoableWorkspace(
            LocalWorkspace(str(root), state=tmp_path / "state", world=World(), env={}),
            lambda: UndoService(app.context).make_recorder(str(root), lambda: (session.id, turn)),
        )
        effect = RunCommand(script="echo two > a; echo n > new", cwd=str(root))
        await workspace.run(effect, timeout=60, stop=asyncio.Event(), max_bytes=1000)
        await workspace.close()
        listed = await talk.run("/rollback")
        assert listed.splitlines()[0].split()[:5] == ["1", "now", "+1", "~1", "-0"]
        assert "-two\n+one" in await talk.run("/rollback diff 1")
        preview = await talk.run("/rollback 1 --preview")
        assert preview.splitlines() == ["would restore  a", "would delete   new"]
        assert "1 restored" in await talk.run("/rollback 1 a")
        assert len(session.transcript.messages) > 0
        text = await talk.run(f"/rollback --to {turn[:12]}")
        assert text.endswith("1 turn removed from the end of the conversation.")
        assert sorted(each.name for each in root.iterdir()) == ["a"]
        assert not session.transcript.messages
        assert "Use /rollback" in await talk.run("/rollback --frobnicate")
