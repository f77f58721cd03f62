"""Servers that bend their own format: what they mean is understood, call by call."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import pytest

from hermes.testing.faults import dripped, flawed, paced
from hermes.testing.steps import Flaw, Step, calls_many, thinks
from hermes.testing.wires.table import WireName
from tests.faults.conftest import Share
from tests.faults.ground import RIGHT, WIRES, Bend, Name, live

FLAWS: tuple[Flaw, ...] = get_args(Flaw)
READ = {"path": "out/right.txt"}


def both(step: Step) -> Step:
    """Two calls where the model would make one."""
    if not step.calls:
        return step
    return calls_many(("write_file", RIGHT), ("read_file", READ), text="I write it.")


def flawing(*flaws: Flaw) -> Bend:
    return lambda step: flawed(both(step), *flaws)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_bent_format_is_understood(tmp_path: Path, wire: WireName) -> None:
    await _understood(tmp_path, {flaw: flawing(flaw) for flaw in FLAWS}, wire)


@pytest.mark.parametrize("wire", WIRES)
async def test_any_pace_is_understood(tmp_path: Path, wire: WireName, share: Share) -> None:
    bends: dict[str, Bend] = {
        "byte by byte": lambda step: dripped(both(step)),
        "in sevens": lambda step: dripped(both(step), size=7),
        "letter by letter": lambda step: paced(both(step), chunk=1),
        "in one piece": lambda step: paced(both(step), chunk=0),
        "bent too": lambda step: dripped(flawing("crlf", "keep_alive", "no_usage")(step), size=3),
    }
    await _understood(tmp_path, share(bends, wire), wire)


@pytest.mark.parametrize("wire", WIRES)
async def test_thoughts_before_the_calls_are_understood(tmp_path: Path, wire: WireName) -> None:
    bends: dict[str, Bend] = {
        "sealed": lambda step: thinks("I think.", then=both(step)),
        "open": lambda step: thinks("I think.", then=both(step), sealed=""),
        "in another field": lambda step: thinks("I think.", then=both(step), form="reasoning"),
        "in the text": lambda step: thinks("I think.", then=both(step), form="inline"),
        "sealed only": lambda step: thinks("", then=both(step), sealed="abcd"),
    }
    await _understood(tmp_path, bends, wire)


async def _understood(root: Path, bends: Mapping[Name, Bend], wire: WireName) -> None:
    """Both calls were run as they were meant, in both turns."""
    lived = await live(root, bends, wire)
    assert {life.ends for life in lived.values()} == {("done", "done")}
    run = {name: [call.arguments for call in life.run] for name, life in lived.items()}
    assert run == dict.fromkeys(bends, [RIGHT, READ] * 2)
