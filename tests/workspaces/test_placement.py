"""Sessions in the places that the settings name, with real commands in them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hermes.app.app import App
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Answer, Say
from hermes.core.effects import Allow, RunCommand
from hermes.core.errors import ConfigError, UsageError
from hermes.core.events import (
    ApprovalAsked,
    QuestionAnswered,
    QuestionAsked,
    Record,
    ToolFinished,
    TurnEnded,
)
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from hermes.undo.workspace import UndoService
from hermes.workspaces.files import find_program
from hermes.workspaces.placement import describe_placement, describe_protection
from hermes.workspaces.shell import describe_backend
from tests.workspaces.elsewhere import folder_at_home
from tests.workspaces.sshd import Sshd
from tests.workspaces.sshd import missing as ssh_missing


class Stage:
    """A home, a project and a model that says what it is told to."""

    def __init__(self, folder: Path, server: ScriptedServer) -> None:
        self.folder, self.server = folder, server
        self.project, self.person = folder / "project", folder / "person"
        self.project.mkdir()
        self.person.mkdir()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.person),
            "OPENAI_BASE_URL": f"{server.url}/v1",
            "OPENAI_API_KEY": "k",
        }

    @asynccontextmanager
    async def app(self, *steps: Step, **settings: Any) -> AsyncIterator[App]:
        self.server.add(*steps)
        flags = {"model.default": "m", **{k.replace("__", "."): v for k, v in settings.items()}}
        config = load(Home(self.folder / "hermes"), env=self.env, flags=flags)
        async with App(config, env=self.env, world=World()) as app:
            yield app

    def opening(self, *, attended: bool = False, worktree: bool = False) -> SessionRequest:
        cwd = str(self.project)
        return SessionRequest(source="test", attended=attended, cwd=cwd, worktree=worktree)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with ScriptedServer.in_thread([]) as server:
        yield Stage(tmp_path, server)


async def turn(session: Session, answers: dict[type, str] | None = None) -> list[Record]:
    """One turn; questions are answered by their kind."""
    records: list[Record] = []
    events = session.subscribe()
    await session.send(Say(text="go"))
    async for record in events:
        records.append(record)
        match record.event:
            case ApprovalAsked(id=id_) | QuestionAsked(id=id_):
                text = (answers or {}).get(type(record.event), "")
                await session.send(Answer(id=id_, text=text))
            case TurnEnded():
                break
            case _:
                pass
    await session.wait_until_idle()
    return records


def results(records: list[Record]) -> list[str]:
    return [r.event.result.text for r in records if isinstance(r.event, ToolFinished)]


async def test_a_command_that_only_reads_costs_no_checkpoint(stage: Stage) -> None:
    (stage.project / "a.py").write_text("x = 1\n")
    looks = "for f in *.py; do wc -l $f; done; x=$(ls | head -1); cat $x"
    async with stage.app(calls("terminal", command=looks), says("done")) as app:
        session = await app.open(stage.opening())
        assert "x = 1" in results(await turn(session))[0]
        assert not (app.context.home.root / "checkpoints").exists()


async def test_what_a_command_destroys_elsewhere_by_roundabout_words_comes_back(
    stage: Stage,
) -> None:
    other = stage.person / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("years of work\n")
    steps = (calls("terminal", command='d=~/oth; env bash -c "rm -rf ${d}er"'), says("done"))
    async with stage.app(*steps, approvals__mode="off", terminal__confinement="off") as app:
        app.context.user_home = str(stage.person)
        session = await app.open(stage.opening())
        await turn(session)
        assert not other.exists()
        undo = UndoService(app.context)
        plan = await undo.in_thread(lambda history: history.plan(session.id))
        await undo.in_thread(lambda history: history.restore(plan, session=session.id))
    assert (other / "thesis.txt").read_text() == "years of work\n"


async def test_a_machine_behind_ssh_is_where_files_and_commands_are(
    stage: Stage, tmp_path: Path
) -> None:
    if why := ssh_missing():
        pytest.skip(why)
    sshd = Sshd(tmp_path / "sshd")
    given = sshd.settings()
    settings = {
        "terminal__backend": "ssh",
        "terminal__ssh_host": given.ssh_host,
        "terminal__ssh_port": given.ssh_port,
        "terminal__ssh_key": given.ssh_key,
        "terminal__ssh_config": given.ssh_config,
    }
    steps = (
        calls("write_file", path="a.txt", content="over there\n"),
        calls("terminal", command="pwd; cat a.txt"),
        calls("search_files", pattern="there"),
        calls("read_file", path="~/a.txt"),
        says("done"),
    )
    try:
        async with stage.app(*steps, **settings) as app:
            session = await app.open(stage.opening())
            opened = session.transcript.opened
            assert opened is not None and opened.cwd == str(sshd.home)
            assert f"commands run on {given.ssh_host}" in opened.system
            told = results(await turn(session))
    finally:
        sshd.stop()
    assert (sshd.home / "a.txt").read_text() == "over there\n"
    assert str(sshd.home) in told[1] and "over there" in told[1]
    assert "a.txt" in told[2] and "over there" in told[3]
    assert not (stage.project / "a.txt").exists()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"terminal__backend": "ssh"}, "no machine is named"),
        ({"terminal__backend": "modal"}, "Modal sandboxes need the extra `modal`; "),
        ({"terminal__backend": "daytona"}, "Daytona needs DAYTONA_API_KEY; "),
    ],
)
async def test_a_place_that_is_not_there_is_told_in_one_sentence(
    stage: Stage, settings: dict[str, str], words: str
) -> None:
    async with stage.app(**settings) as app:
        with pytest.raises(ConfigError, match=words) as caught:
            await app.open(stage.opening())
    assert ". " not in str(caught.value)


async def test_a_missing_container_engine_is_told(stage: Stage) -> None:
    stage.env["PATH"] = str(stage.folder / "empty")
    async with stage.app(terminal__backend="docker") as app:
        assert describe_backend(app.context.settings.terminal).startswith(
            "commands run in a container of "
        )
        with pytest.raises(ConfigError, match="docker or podman is not installed"):
            await app.open(stage.opening())


async def test_what_the_person_allows_is_not_confined(stage: Stage) -> None:
    with folder_at_home() as folder:
        target = folder / "new"
        step = calls("terminal", command=f"echo x > {target}")
        async with stage.app(step, says("no"), step, says("yes")) as app:
            session = await app.open(stage.opening(attended=True))
            await turn(session, {ApprovalAsked: "deny"})
            assert not target.exists()
            await turn(session, {ApprovalAsked: "once"})
            assert target.read_text() == "x\n"


async def test_a_script_that_nobody_was_asked_about_stays_inside(stage: Stage) -> None:
    async with stage.app(
        calls("terminal", command="bash work.sh"),
        says("done"),
    ) as app:
        if not (await describe_protection(app.context)).confined:
            pytest.skip("nothing confines commands here")
        state = stage.folder / "hermes"
        (stage.project / "work.sh").write_text(f"echo in > here; cat {state}/secret\n")
        state.mkdir(exist_ok=True)
        (state / "secret").write_text("KEY")
        session = await app.open(stage.opening())
        [told] = results(await turn(session))
        assert (await describe_placement(app.context)).startswith("commands confined (")
    assert (stage.project / "here").read_text() == "in\n"
    assert find_program("bwrap", stage.env["PATH"]) is None or "KEY" not in told


@pytest.mark.parametrize("confined", [True, False])
async def test_an_unknown_program_runs_unasked_only_where_it_is_confined(
    stage: Stage, confined: bool
) -> None:
    async with stage.app(
        terminal__confinement_strict=confined, terminal__confinement_network=not confined
    ) as app:
        if not (await describe_protection(app.context)).confined:
            pytest.skip("nothing confines commands here")
        session = await app.open(stage.opening())
        effect = RunCommand(script="zork src", cwd=str(stage.project))
        decision = app.controls[session.id].policy.decide(effect, "owner", frozenset({"user"}))
        assert isinstance(decision, Allow) == confined
        assert "confined" in decision.reason


async def test_confinement_can_be_switched_off(stage: Stage) -> None:
    async with stage.app(terminal__confinement="off") as app:
        assert (await describe_protection(app.context)).kind == "none"
        assert await describe_placement(app.context) == "commands not confined"


async def test_the_password_for_sudo_is_asked_for_and_kept_nowhere(
    stage: Stage, tmp_path: Path
) -> None:
    """By a stand-in that takes a password and runs nothing."""
    programs = tmp_path / "programs"
    programs.mkdir()
    right = f'[ "$pass" = "swordfish 7" ] && touch {tmp_path}/in'
    (programs / "sudo").write_text(
        "#!/bin/bash\n"
        f'case "$*" in *-n*) [ -e {tmp_path}/in ]; exit;; esac\n'
        f'if [ "$1" != id ]; then read -r pass; {right}; exit; fi\n'
        f"[ -e {tmp_path}/in ] && echo allowed\n"
    )
    (programs / "sudo").chmod(0o755)
    stage.env["PATH"] = f"{programs}:{stage.env['PATH']}"
    async with stage.app(calls("terminal", command="sudo id"), says("done")) as app:
        session = await app.open(stage.opening(attended=True))
        answers: dict[type, str] = {ApprovalAsked: "once", QuestionAsked: "swordfish 7"}
        records = await turn(session, answers)
        kept = await app.archive.records(session.id)
    assert "allowed" in results(records)[0]
    assert [r.event.secret for r in records if isinstance(r.event, QuestionAsked)] == [True]
    assert [r.event.text for r in records if isinstance(r.event, QuestionAnswered)] == ["***"]
    assert "swordfish" not in repr(kept) + repr([each.body for each in stage.server.requests])
    files = [path for path in (stage.folder / "hermes").rglob("*") if path.is_file()]
    assert [path for path in files if b"swordfish" in path.read_bytes()] == []


async def test_a_session_in_a_worktree_leaves_the_project_alone(stage: Stage) -> None:
    git(stage.project, "init", "-q")
    git(stage.project, "commit", "-q", "--allow-empty", "-m", "one")
    commit = "echo 1 > a && git add a && git -c user.name=A -c user.email=a@b commit -qm two"
    async with stage.app(says("nothing"), calls("terminal", command=commit), says("done")) as app:
        session = await app.open(stage.opening(worktree=True))
        await turn(session)
        await app.close_session(session)
        assert app.context.exit_notices[0].endswith("had nothing new and was removed.")
        session = await app.open(stage.opening(worktree=True))
        await turn(session)
        opened = session.transcript.opened
        assert opened is not None and "/.worktrees/hermes-" in opened.cwd
        await app.close_session(session)
        assert app.context.exit_notices[1].endswith("is kept.")
    assert not (stage.project / "a").exists()
    assert (Path(opened.cwd) / "a").read_text() == "1\n"


async def test_a_worktree_needs_a_repository_on_this_machine(stage: Stage) -> None:
    async with stage.app() as app:
        with pytest.raises(UsageError, match="not in a git repository"):
            await app.open(stage.opening(worktree=True))


async def test_what_a_turn_did_can_be_taken_back_without_being_asked_for(stage: Stage) -> None:
    (stage.project / "a").write_text("mine\n")
    async with stage.app(calls("terminal", command="rm a; echo new > b"), says("done")) as app:
        session = await app.open(stage.opening())
        await turn(session)
        assert not (stage.project / "a").exists()
        undo = UndoService(app.context)
        plan = await undo.in_thread(lambda history: history.plan(session.id, number=1))
        await undo.in_thread(lambda history: history.restore(plan, session=session.id))
    assert (stage.project / "a").read_text() == "mine\n"
    assert not (stage.project / "b").exists()


def git(folder: Path, *words: str) -> None:
    names = ("-c", "user.name=A", "-c", "user.email=a@b.example")
    subprocess.run(("git", *names, *words), cwd=folder, check=True, timeout=120)
