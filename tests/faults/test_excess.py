"""Too much of a good thing: equal calls in one reply, and arguments that are huge."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.commands import Say
from hermes.core.events import ReplyAdded, ToolFinished, ToolStarted, TurnEnded
from hermes.core.session_request import SessionRequest
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, calls_many, says
from hermes.testing.wires.table import WireName
from tests.durability.stage import Stage
from tests.faults.ground import WIRES

HUGE = "".join(f"line {number}\n" for number in range(40_000))
STRICT = "tool_loop_guardrails: {hard_stop_enabled: true}\n"


@pytest.mark.parametrize(
    ("name", "arguments"), [("read_file", {"path": "missing.txt"}), ("fly", {"to": "the moon"})]
)
async def test_equal_calls_in_one_reply_are_answered_once(
    tmp_path: Path, name: str, arguments: dict[str, object]
) -> None:
    """Even failing ones, and even with hard stops: the turn goes on."""
    script = [calls_many(*[(name, arguments)] * 60), says("So there is none.")]
    async with ScriptedServer(script) as server:
        stage = Stage(tmp_path, server, settings=STRICT)
        async with stage.app() as app:
            opening = SessionRequest(source="cli", attended=False, cwd=str(stage.work))
            session = await app.open(opening)
            await session.send(Say(text="Read it."))
            await session.wait_until_idle()
            events = [record.event for record in await app.archive.records(session.id)]
    assert sum(isinstance(event, ToolStarted) for event in events) <= 1
    results = [event.result for event in events if isinstance(event, ToolFinished)]
    assert [result.failed for result in results].count(True) == 1 and len(results) == 60
    (ended,) = [event for event in events if isinstance(event, TurnEnded)]
    assert ended.reason == "done" and server.violations == []


@pytest.mark.parametrize("wire", WIRES)
async def test_huge_arguments_are_shortened_in_later_requests(
    tmp_path: Path, wire: WireName
) -> None:
    script = [
        calls("write_file", path="huge.txt", content=HUGE),
        calls("read_file", path="huge.txt", limit=1),
        says("Written."),
    ]
    async with ScriptedServer(script) as server:
        stage = Stage(tmp_path, server)
        assert (await stage.ask("Write it.", wire=wire)).out == "Written.\n"
        _, second, third = server.requests
        assert stage.work.joinpath("huge.txt").read_text() == HUGE
        assert "characters are not shown again" in second.raw.decode()
        assert len(third.raw) < len(HUGE) // 4
        # The beginning of a request stays the same.
        sent = [request.messages[: len(second.messages)] for request in (second, third)]
        assert [m.text for m in sent[0]] == [m.text for m in sent[1]]
        assert (await stage.run("sessions", "verify")).code == 0
        (session_id,) = await stage.session_ids()
        replies = [r.event for r in await stage.records(session_id)]
        first, *_ = [e.message.calls for e in replies if isinstance(e, ReplyAdded)]
        assert first[0].arguments["content"] == HUGE
    assert server.violations == []
