"""An answer that began well and breaks: nothing of it is run, and asking again puts it right."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from hermes.testing.faults import cut, fails_midway, garbled, hangs
from hermes.testing.steps import Step
from hermes.testing.wires.table import WireName
from tests.faults.conftest import Share
from tests.faults.ground import WIRES, Bend, live

CHUNKS = (0, 1, 2, 3, 5, 8)
BREAKS = ("cut", "reset", "garbled", "429", "500", "503", "529")
# How a turn ends whose answers break each time: with nothing, with calls that cannot be run, or
# well, because the answer without calls is too short to break there.
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
async def test_an_answer_that_breaks_once_is_asked_for_again(
    tmp_path: Path, wire: WireName, share: Share
) -> None:
    bends = share({place: breaking(*place) for place in product(BREAKS, CHUNKS)}, wire)
    lived = await live(tmp_path, bends, wire)
    assert all(life.first.startswith(ENDS) for life in lived.values())
    assert {place: life.second for place, life in lived.items()} == dict.fromkeys(bends, "done")


@pytest.mark.parametrize("wire", WIRES)
async def test_an_error_that_stays_ends_the_turn(tmp_path: Path, wire: WireName) -> None:
    lived = await live(tmp_path, {chunks: breaking("400", chunks) for chunks in (0, 1, 2)}, wire)
    assert all(life.first.startswith("failed: ") for life in lived.values())


@pytest.mark.parametrize("wire", WIRES)
async def test_silence_ends_in_time(tmp_path: Path, wire: WireName) -> None:
    bends: dict[str, Bend] = {
        "before the head": lambda _step: hangs(),
        "after the head": lambda step: hangs(step, after_chunks=0),
        "inside": lambda step: hangs(step, after_chunks=3),
        "with signs of life": lambda step: hangs(step, after_chunks=1, comment_seconds=0.03),
    }
    lived = await live(tmp_path, bends, wire)
    assert all(life.first.startswith(ENDS) for life in lived.values())
    assert {name: life.second for name, life in lived.items()} == dict.fromkeys(bends, "done")
