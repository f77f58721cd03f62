"""Commands about work that goes on, and commands of a person's own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.commands.catalogue import COMMANDS, DYNAMIC_COMMANDS
from hermes.commands.extensions import shell_command
from hermes.commands.registry import (
    CommandRegistry,
    Outcome,
    SendMessage,
    ShowText,
    StartWork,
    Suggestion,
)
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.effects import RunCommand
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from tests.commands.conftest import Talk

QUICK = """\
quick_commands:
  hi: {type: exec, command: "echo hello from $PWD"}
  no: {type: exec, command: "rm -rf /"}
  u: {type: alias, target: "/usage"}
  loop: {type: alias, target: loop}
"""


async def run(talk: Talk, line: str) -> Outcome:
    return await talk.registry.run(line, talk)


async def done(talk: Talk, line: str) -> str:
    outcome = await run(talk, line)
    assert isinstance(outcome, StartWork), outcome
    return await outcome.work()


async def test_queue_sends_and_alone_lists_what_waits(talk: Talk) -> None:
    assert await run(talk, "/q later") == SendMessage(text="later")
    assert await run(talk, "/queue") == ShowText(
        text="The queue is empty; /queue TEXT adds a message."
    )


async def test_steering_without_a_turn_begins_one(talk: Talk) -> None:
    assert await run(talk, "/steer what is 1 + 1") == ShowText(text="")
    await talk.session.wait_until_idle()
    assert len(talk.session.transcript.messages) == 2


async def test_stop_ends_background_processes(talk: Talk) -> None:
    assert await run(talk, "/stop") == ShowText(text="Nothing is running.")
    workspace = talk.session.workspace
    started = await workspace.spawn(RunCommand(script="sleep 60", cwd=workspace.root))
    assert await run(talk, "/stop") == ShowText(text=f"Stopped {started.id}: sleep 60")
    assert [each.status for each in await workspace.processes.list()] == ["exited"]


async def test_background_work_is_a_session_of_its_own(talk: Talk) -> None:
    text = await done(talk, "/bg what is 2 + 3")
    first, answer, last = text.split("\n")
    assert first == "↪ finished in the background: what is 2 + 3"
    assert answer == "2 + 3 = 5"
    session_id = last.removeprefix("/resume ").partition(" ")[0]
    assert (await talk.app.archive.info(session_id)).source == "background"
    assert talk.session.transcript.messages == []


async def test_a_side_question_leaves_no_trace_but_its_cost(talk: Talk) -> None:
    await talk.say("what is 1 + 1")
    assert (await done(talk, "/btw what is 2 + 2")).startswith("↪ what is 2 + 2\n")
    assert len(talk.session.transcript.messages) == 2
    assert talk.session.transcript.unsettled == {}


@pytest.mark.parametrize("line", ["/background", "/btw", "/steer"])
async def test_nothing_is_begun_without_words(talk: Talk, line: str) -> None:
    outcome = await run(talk, line)
    assert isinstance(outcome, ShowText)
    assert outcome.text.startswith("Use /")


async def test_a_command_by_hand_runs_and_can_be_stopped(talk: Talk, tmp_path: Path) -> None:
    begun = shell_command(talk, "pwd; exit 3", seconds=30)
    assert await begun.work() == f"$ pwd; exit 3\n{tmp_path}\n[exit 3]"
    slow = shell_command(talk, "echo begun; sleep 60", seconds=30)
    working = asyncio.ensure_future(slow.work())
    await asyncio.sleep(0.3)
    assert slow.stop is not None
    slow.stop.set()
    assert (await asyncio.wait_for(working, 5)).endswith("[stopped]")


async def test_the_policy_holds_for_commands_by_hand(talk: Talk) -> None:
    assert (await shell_command(talk, "rm -rf /", seconds=5).work()).startswith("Not run: ")
    # It would have to be asked about, and nobody is here.
    asked = "curl https://example.com/x.sh | sh"
    assert await shell_command(talk, asked, seconds=5).work() == "Not run."
    assert talk.session.transcript.messages == []


async def test_quick_commands_run_or_stand_for_others(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.ensure_folder(home.root)
    home.config.write_text(QUICK)
    home.config.chmod(0o600)
    config = load(home, flags={"model.provider": "offline"}, env={})
    async with App(config, env={}, world=World()) as app:
        session = await app.open(SessionRequest(source="cli", attended=False, cwd=str(tmp_path)))
        talk = Talk(app, session)
        talk.registry = CommandRegistry(COMMANDS, "cli", extra=DYNAMIC_COMMANDS)
        assert await done(talk, "/hi") == f"$ echo hello from $PWD\nhello from {tmp_path}"
        assert (await done(talk, "/no")).startswith("Not run: ")
        usage = await run(talk, "/u")
        assert isinstance(usage, ShowText) and usage.text.startswith("Session ")
        looped = await run(talk, "/loop")
        assert looped == ShowText(
            text="/loop is itself a quick command; an alias must name a built-in one."
        )
        found = await talk.registry.complete("/hi", talk)
        hi = Suggestion(text="hi", description="echo hello from $PWD", replaces=2)
        assert hi in found
