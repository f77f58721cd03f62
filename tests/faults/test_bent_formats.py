"""Servers that bend their own format: what they mean is understood, call by call."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from hermes.testing.faults import dripped, flawed, paced
from hermes.testing.steps import Flaw, Step, calls_many, thinks
from hermes.testing.wires.table import WireName
from tests.faults.ground import CONTENT, RIGHT, WIRES, Bend, live

FLAWS: tuple[Flaw, ...] = get_args(Flaw)
READ = {"path": "out/right.txt"}


def both(step: Step) -> Step:
    """Two calls where the model would make one."""
    if not step.calls:
        return step
    return calls_many(("write_file", RIGHT), ("read_file", READ), text="I write it.")


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("flaw", FLAWS)
async def test_a_bent_format_is_understood(tmp_path: Path, wire: WireName, flaw: Flaw) -> None:
    lived = await live(tmp_path, lambda step: flawed(both(step), flaw), wire)
    assert (lived.first, lived.second) == ("done", "done")
    assert [call.arguments for call in lived.run] == [RIGHT, READ] * 2
    assert lived.files == {"out/right.txt": CONTENT}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "bend",
    [
        lambda step: dripped(both(step)),
        lambda step: dripped(both(step), size=7),
        lambda step: paced(both(step), chunk=1),
        lambda step: paced(both(step), chunk=0),
        lambda step: dripped(flawed(both(step), "crlf", "keep_alive", "no_usage"), size=2),
        lambda step: thinks("First I think.", then=both(step)),
        lambda step: thinks("First I think.", then=both(step), sealed=""),
        lambda step: thinks("First I think.", then=both(step), form="reasoning"),
        lambda step: thinks("First I think.", then=both(step), form="inline"),
    ],
    ids=[
        "byte by byte",
        "in sevens",
        "letter by letter",
        "in one piece",
        "several at once",
        "with thoughts",
        "with open thoughts",
        "with thoughts elsewhere",
        "with thoughts in the text",
    ],
)
async def test_any_pace_and_any_thoughts_are_understood(
    tmp_path: Path, wire: WireName, bend: Bend
) -> None:
    lived = await live(tmp_path, bend, wire)
    assert (lived.first, lived.second) == ("done", "done")
    assert [call.arguments for call in lived.run] == [RIGHT, READ] * 2
