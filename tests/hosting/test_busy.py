"""A message that arrives while a turn runs waits, joins the turn, or replaces it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hermes.hosting.request import BusyMode, is_urgent
from hermes.hosting.run import Run
from hermes.testing.request import Request
from hermes.testing.steps import Rule, Step, calls, says
from tests.hosting.hosts import Host, host, settled, until

SESSION = "one"


async def start_two(own: Host, mode: BusyMode) -> tuple[Run, Run]:
    """A run that calls a tool, and a second message while the tool runs."""
    first = await own.start("first", SESSION, exclusive=False)
    await until(lambda: (own.stage.work / "started").exists())
    second = await own.start("second", SESSION, exclusive=False, busy_mode=mode)
    (own.stage.work / "go").touch()
    return await settled(first), await settled(second)


def rule_for(folder: Path) -> Rule[Request]:
    command = f"cd {folder}/stage/work; touch started; until test -e go; do sleep 0.02; done"

    def rule(request: Request) -> Step:
        text = request.last_text
        if "first" in text and "second" not in text and not request.results:
            return calls("terminal", command=command)
        return says(f"Answered: {'second' if 'second' in str(request.body) else 'first'}")

    return rule


async def test_a_queued_message_is_a_turn_of_its_own(tmp_path: Path) -> None:
    async with host(tmp_path, rule_for(tmp_path)) as own:
        first, second = await start_two(own, "queue")
        assert (first.text, second.text) == ("Answered: first", "Answered: second")
        assert first.turn_id != second.turn_id


async def test_a_steering_message_joins_the_running_turn(tmp_path: Path) -> None:
    async with host(tmp_path, rule_for(tmp_path)) as own:
        first, second = await start_two(own, "steer")
        assert first.turn_id == second.turn_id
        assert (first.status, second.status) == ("completed", "completed")
        assert first.text == second.text == "Answered: second"


async def test_an_interrupting_message_replaces_the_running_turn(tmp_path: Path) -> None:
    async with host(tmp_path, rule_for(tmp_path)) as own:
        first, second = await start_two(own, "interrupt")
        assert (first.status, second.status) == ("cancelled", "completed")
        assert second.text == "Answered: second"


async def test_an_idle_session_answers_in_every_mode(tmp_path: Path) -> None:
    async with host(tmp_path) as own:
        for mode in ("queue", "steer", "interrupt"):
            run = await own.ask(mode, SESSION, exclusive=False, busy_mode=mode)
            assert (run.status, run.text) == ("completed", f"You said: {mode}")
            await asyncio.sleep(0)


def test_commands_for_the_running_turn_do_not_wait() -> None:
    assert is_urgent("/steer faster") and is_urgent("/stop")
    assert not is_urgent("/stopwatch") and not is_urgent("stop")
