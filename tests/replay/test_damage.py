"""A damaged session or tape is named as damaged, with exit code 2; it is never replayed as if it
were whole."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from hermes.core.errors import UsageError
from hermes.providers.recorded.tape import read_tape
from hermes.testing.steps import calls, says
from tests.durability.stage import Stage
from tests.replay.story_players import Story, talk, told

STORY = Story("one", (calls("terminal", command="echo hi"), says("Hi.")), talk("Go."), "chat", "")


@pytest.fixture
async def recorded(tmp_path: Path) -> AsyncIterator[tuple[Stage, str]]:
    async with told(STORY, tmp_path) as (stage, session_id):
        yield stage, session_id


def tape_of(stage: Stage, session_id: str) -> Path:
    (tape,) = (stage.home / "sessions" / session_id / "tapes").iterdir()
    return tape


def flip_early(data: bytes) -> bytes:
    return data[:40] + bytes((data[40] ^ 0xFF,)) + data[41:]


def flip_middle(data: bytes) -> bytes:
    at = len(data) // 2
    return data[:at] + bytes((data[at] ^ 0x10,)) + data[at + 1 :]


def flip_late(data: bytes) -> bytes:
    at = len(data) - 30
    return data[:at] + bytes((data[at] ^ 0x01,)) + data[at + 1 :]


def remove_part(data: bytes) -> bytes:
    return data[: len(data) // 2] + data[len(data) // 2 + 50 :]


def empty(data: bytes) -> bytes:
    return b"\0" * len(data)


@pytest.mark.parametrize("change", [flip_early, flip_middle, flip_late, remove_part, empty])
async def test_a_damaged_tape_is_named(
    recorded: tuple[Stage, str], change: Callable[[bytes], bytes]
) -> None:
    stage, session_id = recorded
    tape = tape_of(stage, session_id)
    tape.write_bytes(change(tape.read_bytes()))
    ended = await stage.run("replay", session_id)
    assert (ended.code, ended.out) == (2, "")
    assert f"{tape} is damaged" in ended.err


async def test_no_flipped_bit_of_a_tape_passes(recorded: tuple[Stage, str]) -> None:
    stage, session_id = recorded
    tape = tape_of(stage, session_id)
    data = tape.read_bytes()
    whole = read_tape(tape)
    unnoticed = []
    for at in range(2, len(data), 7):
        tape.write_bytes(data[:at] + bytes((data[at] ^ (1 << at % 8),)) + data[at + 1 :])
        try:
            if read_tape(tape) != whole:
                unnoticed.append(at)
        except UsageError:
            continue
    assert unnoticed == []


async def test_a_tape_that_ends_early_is_not_damaged(recorded: tuple[Stage, str]) -> None:
    """A killed process leaves such a tape."""
    stage, session_id = recorded
    tape = tape_of(stage, session_id)
    data = tape.read_bytes()
    sizes = set()
    for size in range(len(data) - 1, len(data) // 2, -97):
        tape.write_bytes(data[:size])
        found = read_tape(tape)
        assert found is not None
        sizes.add(len(found.exchanges))
    assert sizes <= {0, 1, 2}


CHANGES = {
    "an edited hash": "UPDATE log SET hash = zeroblob(length(hash)) WHERE n = 5",
    "an edited text": "UPDATE log SET rest = replace(rest, 'Go.', 'No.')",
    "an edited time": "UPDATE log SET at = at + 1 WHERE n = 4",
    "swapped records": (
        "UPDATE log SET n = -n WHERE n IN (5, 6); UPDATE log SET n = 11 + n WHERE n < 0"
    ),
    "a removed record": "DELETE FROM log WHERE n = 5",
    "an added record": (
        "INSERT INTO log SELECT max(id) + 1, session, max(n) + 1, turn_id, shape, rest, at, hash "
        "FROM log"
    ),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_changed_journal_is_named(recorded: tuple[Stage, str], change: str) -> None:
    stage, session_id = recorded
    assert (await stage.run("replay", session_id)).code == 0
    with sqlite3.connect(stage.home / "hermes.db") as db:
        db.executescript(CHANGES[change])
    db.close()
    ended = await stage.run("replay", session_id)
    assert ended.code == 2, ended
    assert "is damaged" in ended.err
