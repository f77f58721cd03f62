"""A full disk stops the work with a clear sentence; once there is space, nothing is missing."""

from __future__ import annotations

import errno
from pathlib import Path

from hermes.core.messages import ToolMessage
from hermes.core.tool_calls import UNKNOWN_OUTCOME
from hermes.core.transcript import fold
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.durability.kills import check_journal
from tests.durability.mounts import mounted
from tests.durability.scenarios import shape_of
from tests.durability.stage import Ended, Stage

FILL = "cat /dev/zero > {}/filler"


def assert_told(ended: Ended) -> None:
    assert ended.code == 1
    assert ended.err.startswith("error: ") and ended.err.count("\n") == 1, ended.err
    assert "free some space" in ended.err


def fill(home: Path) -> None:
    """Not a byte is left."""
    with home.joinpath("filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC


async def test_a_new_message_is_refused_and_can_be_said_again(tmp_path: Path) -> None:
    async with ScriptedServer(lambda request: says(f"You said: {request.last_text}")) as server:
        stage = Stage(tmp_path / "stage", server)
        with mounted(tmp_path / "mount", "size=4m") as stage.home:
            assert (await stage.ask("one")).code == 0
            (session_id,) = await stage.session_ids()
            fill(stage.home)
            assert_told(await stage.ask("two", resume=session_id))
            assert_told(await stage.ask("a new one"))
            stage.home.joinpath("filler").unlink()
            assert (await stage.ask("two", resume=session_id)).out == "You said: two\n"
            await _check(stage, session_id, ["one", "two"])
    assert server.violations == []


async def test_a_turn_that_fills_the_disk_is_taken_up_later(tmp_path: Path) -> None:
    def model(request: Request) -> Step:
        if request.results or request.last_text != "one":
            return says(f"You said: {request.last_text.splitlines()[0]}")
        return calls("terminal", command=FILL.format(disk))

    async with ScriptedServer(model) as server:
        stage = Stage(tmp_path / "stage", server)
        with mounted(tmp_path / "mount", "size=4m") as disk:
            stage.home = disk / "home"
            assert_told(await stage.ask("one"))
            disk.joinpath("filler").unlink()
            (session_id,) = await stage.session_ids()
            assert (await stage.ask("two", resume=session_id)).code == 0
            records = await stage.records(session_id)
            check_journal(records)
            (results,) = [m for m in fold(records).messages if isinstance(m, ToolMessage)]
            assert results.results[0].text.startswith(UNKNOWN_OUTCOME)
            assert (await stage.run("sessions", "verify")).code == 0
    assert server.violations == []


async def _check(stage: Stage, session_id: str, words: list[str]) -> None:
    records = await stage.records(session_id)
    check_journal(records)
    said = [text for who, text in shape_of(fold(records).messages) if who == "user"]
    assert said == words
    assert (await stage.run("sessions", "verify")).code == 0
