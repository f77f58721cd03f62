"""Smart approvals: a model may answer simple questions with yes, and only with the very word."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.commands import Say
from hermes.core.events import ApprovalAsked, EffectDecided, ModelCalled, ToolFinished
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, fails, says
from tests.models.test_title_writer import app_at, opened

SMART = "approvals: {mode: smart, timeout: 0.05}\n"
COMMAND = "npm publish --dry-run-please"


async def held(
    tmp_path: Path,
    *steps: Step,
    more: str = SMART,
    command: str = COMMAND,
    attended: bool = True,
) -> list[object]:
    """The events of a turn with one command that is asked about."""
    script = (calls("terminal", command=command), *steps, says("Done."))
    async with ScriptedServer(script) as server, app_at(tmp_path / "home", server, more) as app:
        session = await opened(app, tmp_path, attended=attended)
        await session.send(Say(text="go"))
        await session.wait_until_idle()
        return [record.event for record in await app.journal.read(session.id)]


async def test_a_yes_lets_the_command_run_and_is_booked_and_named(tmp_path: Path) -> None:
    events = await held(tmp_path, says("APPROVE"))
    assert not any(isinstance(each, ApprovalAsked) for each in events)
    (decided,) = [each for each in events if isinstance(each, EffectDecided)]
    assert decided.by == "judge"
    causes = [each.cause for each in events if isinstance(each, ModelCalled)]
    assert causes == ["chat", "approval", "chat"]
    (finished,) = [each for each in events if isinstance(each, ToolFinished)]
    assert "Not allowed" not in finished.result.text


@pytest.mark.parametrize(
    "answer",
    [
        says("DENY"),
        says("ESCALATE"),
        says("APPROVE because it is safe"),
        says("approve"),
        says(""),
        fails(400, "no"),
    ],
)
async def test_anything_else_is_a_question(tmp_path: Path, answer: Step) -> None:
    events = await held(tmp_path, answer)
    assert any(isinstance(each, ApprovalAsked) for each in events)
    (finished,) = [each for each in events if isinstance(each, ToolFinished)]
    assert "Not allowed" in finished.result.text


async def test_a_model_may_say_yes_although_nobody_is_there(tmp_path: Path) -> None:
    events = await held(tmp_path, says("APPROVE"), attended=False)
    (decided,) = [each for each in events if isinstance(each, EffectDecided)]
    assert decided.by == "judge"
    (finished,) = [each for each in events if isinstance(each, ToolFinished)]
    assert "Not allowed" not in finished.result.text


async def test_without_its_yes_nobody_is_asked_and_nothing_runs(tmp_path: Path) -> None:
    events = await held(tmp_path, says("ESCALATE"), attended=False)
    assert not any(isinstance(each, ApprovalAsked) for each in events)
    (finished,) = [each for each in events if isinstance(each, ToolFinished)]
    assert "nobody is here" in finished.result.text


async def test_no_model_is_asked_where_the_settings_do_not_want_it(tmp_path: Path) -> None:
    more = "approvals: {mode: manual, timeout: 0.05}\n"
    events = await held(tmp_path, more=more)
    assert [each.cause for each in events if isinstance(each, ModelCalled)] == ["chat", "chat"]


async def test_what_is_not_simple_is_not_for_a_model(tmp_path: Path) -> None:
    events = await held(tmp_path, command="npm publish; git push")
    assert [each.cause for each in events if isinstance(each, ModelCalled)] == ["chat", "chat"]
