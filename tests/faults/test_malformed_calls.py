"""Calls that are not what they should be: run as they were meant, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.testing.steps import (
    ScriptedCall,
    Step,
    call,
    calls,
    calls_cut_short,
    calls_many,
)
from hermes.testing.wires.table import WireName
from tests.faults.conftest import Share
from tests.faults.ground import RIGHT, WIRES, Bend, Lived, live
from tests.faults.malformed_answers import NAMES, TEXT, UNUSABLE, USABLE, WRITE

# Where a model has native calls, these are ordinary text.
ORDINARY = ("text: bare JSON", "text: fenced JSON", "text: python")
ORDINARY_BROKEN = ("text: bare JSON, no end", "text: fenced JSON, broken")
SAID = ("", "Done.", "Fine.", "I write it now.", "I fly.")


def calling(step: Step) -> Bend:
    """The model calls like this whenever it calls."""
    return lambda meant: step if meant.calls else meant


@pytest.mark.parametrize("wire", WIRES)
async def test_what_cannot_be_used_is_reported_to_the_model_and_never_run(
    tmp_path: Path, wire: WireName, share: Share
) -> None:
    bends = {name: calling(step) for name, step in share(UNUSABLE, wire).items()}
    lived = await live(tmp_path, bends, wire)
    assert {name: life.ends for name, life in lived.items()} == dict.fromkeys(
        bends, ("done", "done")
    )
    assert {name for name, life in lived.items() if len(life.run) > 1} == set()
    shown = {name for name, life in lived.items() if shows_markup(life)}
    assert shown == (set(ORDINARY_BROKEN) & bends.keys() if wire == "messages" else set())


@pytest.mark.parametrize("wire", WIRES)
async def test_what_is_clear_all_the_same_is_run_as_it_was_meant(
    tmp_path: Path, wire: WireName, share: Share
) -> None:
    # With native calls, nothing that is written as text is run.
    usable = {n: s for n, s in USABLE.items() if s.calls} if wire == "messages" else USABLE
    bends = {name: calling(step) for name, step in share(usable, wire).items()}
    lived = await live(tmp_path, bends, wire)
    assert {name: len(life.run) for name, life in lived.items()} == dict.fromkeys(bends, 2)
    assert {life.ends for life in lived.values()} == {("done", "done")}
    assert {name for name, life in lived.items() if shows_markup(life)} == set()


async def test_a_model_with_native_calls_is_told_not_to_write_them(tmp_path: Path) -> None:
    texts = {name: step for name, step in USABLE.items() if step.text and name not in ORDINARY}
    lived = await live(tmp_path, {name: calling(step) for name, step in texts.items()}, "messages")
    assert {life.ends for life in lived.values()} == {("done", "done")}
    # The second turn asks again and gets a native call.
    assert {name: len(life.run) for name, life in lived.items()} == dict.fromkeys(texts, 1)
    assert {name for name, life in lived.items() if shows_markup(life)} == set()


def shows_markup(life: Lived) -> bool:
    """Whether a person saw a call as the answer."""
    return any(reply.text.strip() not in SAID for reply in life.replies)


@pytest.mark.parametrize("wire", WIRES)
async def test_arguments_cut_by_the_output_limit_are_not_run(
    tmp_path: Path, wire: WireName, share: Share
) -> None:
    sizes = (0, 1, len(TEXT) // 2, len(TEXT) - 2, len(TEXT) - 1)
    bends = {size: calling(calls_cut_short(WRITE, TEXT[:size])) for size in sizes}
    lived = await live(tmp_path, share(bends, wire), wire)
    assert {life.second for life in lived.values()} == {"done"}
    assert all(len(life.run) <= 1 for life in lived.values())


@pytest.mark.parametrize("wire", WIRES)
async def test_each_call_has_an_id_of_its_own_whatever_the_model_gave(
    tmp_path: Path, wire: WireName, share: Share
) -> None:
    ids = (("same", "same"), ("", ""), ("ok", ""), ("a b/ü", "a b/ü"), ("x" * 200, "x" * 200))
    read = {"path": "out/right.txt"}
    steps = {
        pair: calls_many(call(WRITE, RIGHT, id=pair[0]), call("read_file", read, id=pair[1]))
        for pair in ids
    }
    bends = {pair: calling(step) for pair, step in share(steps, wire).items()}
    lived = await live(tmp_path, bends, wire)
    names = [WRITE, "read_file"] * 2
    assert all([run.name for run in life.run] == names for life in lived.values())
    assert {life.ends for life in lived.values()} == {("done", "done")}


@pytest.mark.parametrize("wire", WIRES)
async def test_a_tool_that_does_not_exist_is_not_run(
    tmp_path: Path, wire: WireName, share: Share
) -> None:
    steps = {name: Step(calls=(ScriptedCall(name=name, arguments=RIGHT),)) for name in NAMES}
    bends = {name: calling(step) for name, step in share(steps, wire).items()}
    lived = await live(tmp_path, bends, wire)
    assert all(life.run == [] for life in lived.values())
    assert {life.second for life in lived.values()} == {"done"}


@pytest.mark.parametrize("wire", WIRES)
async def test_several_calls_do_not_spoil_each_other(
    tmp_path: Path, wire: WireName, share: Share
) -> None:
    broken = ScriptedCall(name=WRITE, raw='{"path": "out/wr')
    many = (("read_file", {"path": f"{number}.txt"}) for number in range(100))
    bends = {
        "stuttered": calling(calls_many(*[(WRITE, RIGHT)] * 3)),
        "one of them broken": calling(calls_many(call(WRITE, RIGHT), broken)),
    }
    bends |= share({"a hundred": calling(calls_many(*many))}, wire)
    lived = await live(tmp_path, bends, wire)
    assert {life.second for life in lived.values()} == {"done"}
    assert len(lived["stuttered"].run) == 2


@pytest.mark.parametrize("wire", WIRES)
async def test_a_call_that_never_comes_right_ends_the_turn(tmp_path: Path, wire: WireName) -> None:
    lived = await live(tmp_path, {"": lambda _step: calls("fly", to="the moon")}, wire)
    assert lived[""].ends == ("partial: invalid_tool_calls", "done")
