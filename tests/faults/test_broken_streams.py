"""An answer that began well and breaks: nothing of it is run, and asking again puts it right."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.testing.faults import cut, fails_midway, garbled, hangs
from hermes.testing.steps import Step
from hermes.testing.wires.table import WireName
from tests.faults.ground import WIRES, Bend, live

CHUNKS = (0, 1, 2, 3, 5, 8)
BREAKS = ("cut", "reset", "garbled", "429", "500", "503", "529")
# What the answer ends in when it breaks each time: with nothing, with calls that cannot be run,
# or well, because the answer without calls is too short to break there.
ENDS = ("failed: ", "partial: invalid_tool_calls", "done")


def breaking(how: str, chunks: int) -> Bend:
    def bend(step: Step) -> Step:
        match how:
            case "cut" | "reset":
                return cut(step, after_chunks=chunks, reset=how == "reset")
            case "garbled":
                return garbled(step, after_chunks=chunks)
            case _:
                return fails_midway(step, after_chunks=chunks, status=int(how))

    return bend


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("how", BREAKS)
async def test_an_answer_that_breaks_once_is_asked_for_again(
    tmp_path: Path, wire: WireName, how: str
) -> None:
    for chunks in CHUNKS:
        lived = await live(tmp_path / str(chunks), breaking(how, chunks), wire)
        assert lived.first.startswith(ENDS) and lived.second == "done", chunks


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("chunks", [0, 1, 2])
async def test_an_error_that_stays_ends_the_turn(
    tmp_path: Path, wire: WireName, chunks: int
) -> None:
    lived = await live(tmp_path, breaking("400", chunks), wire)
    assert lived.first.startswith("failed: ")


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "bend",
    [
        lambda _step: hangs(),
        lambda step: hangs(step, after_chunks=0),
        lambda step: hangs(step, after_chunks=3),
        lambda step: hangs(step, after_chunks=1, comment_seconds=0.03),
    ],
    ids=["before the head", "after the head", "inside", "with signs of life"],
)
async def test_silence_ends_in_time(tmp_path: Path, wire: WireName, bend: Bend) -> None:
    lived = await live(tmp_path, bend, wire)
    assert lived.first.startswith(ENDS) and lived.second == "done"
