"""A home on a disk that cannot be written: the past is there to be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.surfaces.cli.program import Program
from tests.surfaces.cli.rights import modes_heeded

READING = (
    "sessions list",
    "sessions search calculate",
    "sessions stats",
    "sessions export -",
    "cost",
    "insights",
    "status",
)


@pytest.fixture
def locked(program: Program) -> Iterator[Program]:
    """A home with one session, left in order."""
    assert program.ask("calculate 6*7").code == 0
    places = (*program.home.rglob("*"), program.home)
    modes = {path: path.stat().st_mode for path in places}
    for path in places:
        path.chmod(0o500 if path.is_dir() else 0o400)
    yield program
    for path, mode in reversed(modes.items()):
        path.chmod(mode)


@pytest.mark.parametrize("line", READING)
def test_the_past_can_be_read(locked: Program, line: str) -> None:
    before = names(locked.home)
    with modes_heeded():
        result = locked(*line.split())
    assert (result.code, result.err) == (0, ""), result
    assert result.out
    assert names(locked.home) == before


def test_nothing_is_said_in_a_session_that_cannot_be_kept(locked: Program) -> None:
    with modes_heeded():
        result = locked.ask("calculate 6*7")
    assert (result.code, result.out) == (1, "")
    assert "cannot be written" in result.err


def test_what_was_not_written_to_its_place_yet_is_not_passed_over(locked: Program) -> None:
    """A log of writes that is left behind holds the newest: without it the past would be another,
    and reading it takes a folder that can be written."""
    locked.home.chmod(0o700)
    log = locked.home / "hermes.db-wal"
    log.write_bytes(b"what came last")
    log.chmod(0o400)
    locked.home.chmod(0o500)
    with modes_heeded():
        result = locked("sessions", "list")
    assert (result.code, result.out) == (1, "")
    assert "choose another home" in result.err


def names(home: Path) -> list[Path]:
    return sorted(home.rglob("*"))
