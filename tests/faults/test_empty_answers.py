"""Answers with nothing in them, or with an end that says little, end the turn and no more."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.testing.steps import Step, says, says_nothing, thinks
from hermes.testing.wires.table import WireName
from tests.faults.ground import WIRES, Bend, live

EMPTY: dict[str, Bend] = {
    "nothing": lambda _step: says_nothing(),
    "spaces": lambda _step: says(" \n "),
    "thoughts only": lambda _step: thinks("Hm."),
    "open thoughts only": lambda _step: thinks("Hm.", sealed=""),
    "filtered": lambda _step: Step(stop="filtered"),
    "no room": lambda _step: Step(stop="length"),
    "thoughts without room": lambda _step: replace(thinks("Hm."), stop="length"),
}
ODD: dict[str, Bend] = {
    "filtered words": lambda step: replace(step, stop="filtered"),
    "done, with a call": lambda step: replace(step, stop="done"),
    "calls, without one": lambda step: replace(step, stop="calls"),
    "half a pair": lambda step: step if step.calls else says("a\ud83d b"),
    "control characters": lambda step: step if step.calls else says("a\x00b\x1b[31m"),
}


@pytest.mark.parametrize("wire", WIRES)
async def test_an_empty_answer_ends_the_turn(tmp_path: Path, wire: WireName) -> None:
    lived = await live(tmp_path, EMPTY, wire)
    assert {life.ends for life in lived.values()} == {("done", "done")}
    replies = [reply for life in lived.values() for reply in life.replies]
    assert all(reply.text.strip() or reply.calls for reply in replies)


@pytest.mark.parametrize("wire", WIRES)
async def test_an_odd_end_is_an_end(tmp_path: Path, wire: WireName) -> None:
    lived = await live(tmp_path, ODD, wire)
    assert {life.ends for life in lived.values()} == {("done", "done")}
    assert {name: len(life.run) for name, life in lived.items()} == dict.fromkeys(ODD, 2)
