"""Calls that are not what they should be: run as they were meant, or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes.testing.steps import (
    ScriptedCall,
    Step,
    call,
    calls,
    calls_cut_short,
    calls_many,
    calls_raw,
)
from hermes.testing.wires.table import WireName
from tests.faults.conftest import Share
from tests.faults.ground import RIGHT, WIRES, Bend, live

WRITE = "write_file"
TEXT = json.dumps(RIGHT)

UNUSABLE = {
    "nothing": "",
    "null": "null",
    "a brace": "{",
    "half a key": '{"pat',
    "half a value": '{"path": "out/ri',
    "no end": '{"path": "out/right.txt", "content": "All"',
    "a list": "[]",
    "a string": '"out/right.txt"',
    "a number": "7",
    "another quote": "{'path': 'out/x', 'content': 'y'}",
    "no number": '{"path": NaN}',
    "too deep": "[" * 5_000,
    "other types": '{"path": {"a": 1}, "content": ["x"]}',
    "too little": '{"path": "out/x"}',
    "two different ones": '{"path": "out/x", "content": "y"}{"path": "out/z", "content": "y"}',
    "words": "I write the file out/x now.",
}
USABLE = {
    "a fence": f"```json\n{TEXT}\n```",
    "a comma too many": TEXT[:-1] + ",}",
    "twice the same": TEXT + TEXT,
    "as a string": json.dumps(TEXT),
    "space around it": f"\n\t {TEXT} \n",
    "escapes": json.dumps(RIGHT, ensure_ascii=True),
    "raw letters": json.dumps(RIGHT, ensure_ascii=False),
}


def calling(step: Step) -> Bend:
    """The model calls like this whenever it calls."""
    return lambda meant: step if meant.calls else meant


@pytest.mark.parametrize("wire", WIRES)
async def test_arguments_that_cannot_be_used_are_not_run(
    tmp_path: Path, wire: WireName, share: Share
) -> None:
    bends = {name: calling(calls_raw(WRITE, raw)) for name, raw in share(UNUSABLE, wire).items()}
    lived = await live(tmp_path, bends, wire)
    assert {life.second for life in lived.values()} == {"done"}
    assert all(len(life.run) <= 1 for life in lived.values())


@pytest.mark.parametrize("wire", WIRES)
async def test_arguments_that_are_clear_all_the_same_are_run(
    tmp_path: Path, wire: WireName, share: Share
) -> None:
    bends = {name: calling(calls_raw(WRITE, raw)) for name, raw in share(USABLE, wire).items()}
    lived = await live(tmp_path, bends, wire)
    assert {name: len(life.run) for name, life in lived.items()} == dict.fromkeys(bends, 2)
    assert {life.ends for life in lived.values()} == {("done", "done")}


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
    names = ("fly", "", " ", "a b ü!", "x" * 300, "rm -rf", "../write")
    steps = {name: Step(calls=(ScriptedCall(name=name, arguments=RIGHT),)) for name in names}
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
