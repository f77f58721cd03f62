"""Output that nobody takes and homes that nobody can write to end in a word, not in a crash."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from hermes.core.events import TurnEnded
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import says
from tests.durability.mounts import mounted
from tests.durability.stage import PROGRAM, Ended, Stage, finished

LONG = "All work and no play. " * 20_000


async def in_bash(stage: Stage, ending: str, *words: str) -> Ended:
    """The program as part of a line of bash; the line ends with its exit code."""
    program = shlex.join([PROGRAM, *stage.asking("Hello."), *words])
    return await finished(await stage.command("bash", "-c", f"{program} {ending}"))


@pytest.mark.parametrize("words", [(), ("--json",)])
async def test_a_reader_that_leaves_is_no_trouble(tmp_path: Path, words: tuple[str, ...]) -> None:
    async with ScriptedServer([says(LONG)]) as server:
        stage = Stage(tmp_path, server)
        ended = await in_bash(stage, "| head -c 1; exit ${PIPESTATUS[0]}", *words)
        assert (ended.code, len(ended.out), ended.err) == (0, 1, "")
        (session_id,) = await stage.session_ids()
        *_, last = await stage.records(session_id)
        assert isinstance(last.event, TurnEnded) and last.event.reason == "done"


@pytest.mark.parametrize("ending", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
async def test_closed_streams_are_no_trouble(tmp_path: Path, ending: str) -> None:
    async with ScriptedServer([says("Yes.")]) as server:
        ended = await in_bash(Stage(tmp_path, server), ending)
        assert (ended.code, ended.err) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
async def test_output_that_cannot_be_written_is_a_failure_in_one_sentence(tmp_path: Path) -> None:
    async with ScriptedServer([says("Yes.")]) as server:
        stage = Stage(tmp_path, server)
        ended = await in_bash(stage, "> /dev/full")
        assert_one_sentence(ended)
        (session_id,) = await stage.session_ids()
        *_, last = await stage.records(session_id)
        assert isinstance(last.event, TurnEnded) and last.event.reason == "done"


async def test_a_home_below_a_file_is_a_failure_in_one_sentence(tmp_path: Path) -> None:
    async with ScriptedServer([says("Yes.")]) as server:
        stage = Stage(tmp_path, server)
        tmp_path.joinpath("file").touch()
        stage.home = tmp_path / "file" / "home"
        assert_one_sentence(await stage.ask("Hello."))
        assert server.requests == []


async def test_a_home_that_is_read_only_is_a_failure_in_one_sentence(tmp_path: Path) -> None:
    async with ScriptedServer([says("Yes.")]) as server:
        stage = Stage(tmp_path / "stage", server)
        with mounted(tmp_path / "mount", "ro") as stage.home:
            assert_one_sentence(await stage.ask("Hello."))
        assert server.requests == []


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is forbidden to root")
async def test_a_home_of_somebody_else_is_a_failure_in_one_sentence(tmp_path: Path) -> None:
    async with ScriptedServer([says("Yes.")]) as server:
        stage = Stage(tmp_path, server)
        stage.home.chmod(0o500)
        assert_one_sentence(await stage.ask("Hello."))
        assert server.requests == []


def assert_one_sentence(ended: Ended) -> None:
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: ") and ended.err.count("\n") == 1, ended.err
