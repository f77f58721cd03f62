"""What was done lately: counted once, kept beside the journal, shown in numbers and bars."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.codec.json import decode
from hermes.commands.insights import NO_ACTIVITY, insight_lines
from hermes.core.events import (
    DurableEvent,
    MessageReceived,
    ReplyAdded,
    SessionOpened,
    ToolFinished,
    TurnEnded,
)
from hermes.core.messages import AssistantMessage, Text, ToolCall, ToolResult, Usage, user_says
from hermes.homes.insights import Insights, insights
from hermes.journal.usage_tally import HOUR_SECONDS
from hermes.testing.server import ScriptedServer
from tests.durability.observing import eventually
from tests.learning.school import NAME, Pupil, School, say


def app_at(folder: Path) -> App:
    return School(folder, Nobody()).app()


class Nobody:
    url = "http://127.0.0.1:9"


def session(tool: str, *, source: str = "cli", failed: bool = False) -> list[DurableEvent]:
    call = ToolCall(id="c", name=tool)
    result = ToolResult(
        call_id="c", name=tool, parts=(Text(text="x"),), failed=failed, details={"name": "a"}
    )
    usage = Usage(input=100, output=10, cost=0.5)
    return [
        SessionOpened(source=source, cwd="/", model="m", provider="p", system=""),
        MessageReceived(message=user_says("Do it")),
        ReplyAdded(message=AssistantMessage(parts=(call,)), usage=usage, model="m", provider="p"),
        ToolFinished(result=result),
        TurnEnded(reason="done", usage=usage),
    ]


async def test_a_fresh_home_has_nothing_to_show_and_gets_no_file(tmp_path: Path) -> None:
    async with app_at(tmp_path) as app:
        found = await insights(app.context, app.journal, app.archive, app.skills(), app.memory)
        assert found == Insights(days_back=30, source="")
        assert insight_lines(found) == [NO_ACTIVITY]
    assert not (tmp_path / "home" / "hermes.db").exists()


async def test_sessions_tools_skills_and_hours_are_counted(tmp_path: Path) -> None:
    async with app_at(tmp_path) as app:
        await app.journal.create("s1", session("terminal"))
        await app.journal.create("s2", session("terminal", failed=True))
        await app.journal.create("s3", session("skill_view", source="acp"))
        found = await insights(
            app.context, app.journal, app.archive, app.skills(), app.memory, days=7
        )
        assert (found.sessions, found.messages, found.tool_calls) == (3, 6, 3)
        assert found.usage.prompt == 300 and found.usage.cost == pytest.approx(1.5)
        assert [(each.name, each.calls, each.failures) for each in found.tools] == [
            ("terminal", 2, 1),
            ("skill_view", 1, 0),
        ]
        assert [(each.name, each.loads) for each in found.skills] == [("a", 1)]
        assert found.platforms == {"cli": 2, "acp": 1}
        (model,) = found.models
        assert (model.model, model.sessions, model.task) == ("m", 3, "")
        hour = time.localtime(app.context.world.clock.now() // HOUR_SECONDS * HOUR_SECONDS).tm_hour
        assert found.hours[hour] == 3 and sum(found.hours) == sum(found.weekdays) == 3
        assert (found.days[-1], found.active_days, found.streak) == (3, 1, 1)
        only = await insights(
            app.context, app.journal, app.archive, app.skills(), app.memory, days=7, source="acp"
        )
        assert (only.sessions, only.tool_calls, only.usage.prompt) == (1, 1, 100)


async def test_what_is_new_is_added(tmp_path: Path) -> None:
    async with app_at(tmp_path) as app:
        await app.journal.create("s1", session("terminal"))
        first = await insights(app.context, app.journal, app.archive, app.skills(), app.memory)
        await app.journal.create("s2", session("terminal"))
        second = await insights(app.context, app.journal, app.archive, app.skills(), app.memory)
        assert (first.tool_calls, second.tool_calls) == (1, 2)


async def test_the_chart_is_plain_where_no_colours_are(tmp_path: Path) -> None:
    async with app_at(tmp_path) as app:
        await app.journal.create("s1", session("terminal", failed=True))
        found = await insights(app.context, app.journal, app.archive, app.skills(), app.memory)
    text = "\n".join(insight_lines(found))
    assert "\x1b" not in text
    for words in ("Last 30 days", "Tools", "terminal", "1 failed", "Hours of the day", "$0.5000"):
        assert words in text
    coloured = insight_lines(found, paint=lambda text, role: f"<{role}>{text}</>")
    assert "<bold>Tools</>" in coloured


async def test_side_work_is_told_apart_from_answers(tmp_path: Path) -> None:
    async with ScriptedServer(Pupil()) as server:
        school = School(tmp_path, server)
        app = school.app()
        session = await school.attended(app)
        await say(session, "Build a release.")
        await eventually(lambda: bool(school.versions(app)), 30)
        found = await insights(app.context, app.journal, app.archive, app.skills(), app.memory)
        assert {each.task for each in found.models} == {"", "background_review"}
        await app.close()
    assert NAME not in {each.name for each in found.skills}


def test_the_command_shows_and_tells_in_json(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("hermes")
    env = {"PATH": os.environ["PATH"], "HERMES_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}

    def run(*words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            (program, *words), env=env, capture_output=True, check=False, timeout=120
        )

    assert run("insights").stdout.decode().strip() == NO_ACTIVITY
    assert run("-z", "list the files here").returncode == 0
    found = decode(dict, run("insights", "--days", "3", "--json").stdout)
    assert (found["sessions"], len(found["days"])) == (1, 3)
    assert run("insights", "--days", "0").returncode == 2
