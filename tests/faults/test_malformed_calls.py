"""Calls that are not what they should be: run as they were meant, or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes.testing.steps import (
    Call,
    Step,
    call,
    calls,
    calls_cut_short,
    calls_many,
    calls_raw,
)
from hermes.testing.wires.table import WireName
from tests.faults.ground import CONTENT, RIGHT, WIRES, Bend, live

WRITE = "write_file"
TEXT = json.dumps(RIGHT)
INVALID = "partial: invalid_tool_calls"

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
    "too much": '{"path": "out/x", "content": "y", "mode": "w"}',
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
@pytest.mark.parametrize("raw", UNUSABLE)
async def test_arguments_that_cannot_be_used_are_not_run(
    tmp_path: Path, wire: WireName, raw: str
) -> None:
    lived = await live(tmp_path, calling(calls_raw(WRITE, UNUSABLE[raw])), wire)
    assert lived.second == "done"
    assert [call.arguments for call in lived.run] in ([], [RIGHT])


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("raw", USABLE)
async def test_arguments_that_are_clear_all_the_same_are_run(
    tmp_path: Path, wire: WireName, raw: str
) -> None:
    lived = await live(tmp_path, calling(calls_raw(WRITE, USABLE[raw])), wire)
    assert (lived.first, lived.second) == ("done", "done")
    assert lived.files == {"out/right.txt": CONTENT}


@pytest.mark.parametrize("wire", WIRES)
async def test_arguments_cut_by_the_output_limit_are_not_run(
    tmp_path: Path, wire: WireName
) -> None:
    for size in (0, 1, len(TEXT) // 2, len(TEXT) - 2, len(TEXT) - 1):
        step = calls_cut_short(WRITE, TEXT[:size])
        lived = await live(tmp_path / str(size), calling(step), wire)
        assert lived.second == "done"
        assert len(lived.run) <= 1


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "ids",
    [("same", "same"), ("", ""), ("ok", ""), ("a b/ü", "a b/ü"), ("x" * 200, "x" * 200)],
    ids=["same", "empty", "one empty", "odd", "long"],
)
async def test_each_call_has_an_id_of_its_own_whatever_the_model_gave(
    tmp_path: Path, wire: WireName, ids: tuple[str, str]
) -> None:
    step = calls_many(
        call(WRITE, RIGHT, id=ids[0]), call("read_file", {"path": "out/right.txt"}, id=ids[1])
    )
    lived = await live(tmp_path, calling(step), wire)
    assert (lived.first, lived.second) == ("done", "done")
    assert [run.name for run in lived.run] == [WRITE, "read_file"] * 2


@pytest.mark.parametrize("wire", WIRES)
async def test_a_stuttered_call_is_run_once(tmp_path: Path, wire: WireName) -> None:
    lived = await live(tmp_path, calling(calls_many(*[(WRITE, RIGHT)] * 3)), wire)
    assert (lived.first, lived.second) == ("done", "done")
    assert len(lived.run) == 2


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", ["fly", "", " ", "a b ü!", "x" * 300, "rm -rf", "../write"])
async def test_a_tool_that_does_not_exist_is_not_run(
    tmp_path: Path, wire: WireName, name: str
) -> None:
    lived = await live(tmp_path, calling(Step(calls=(Call(name=name, arguments=RIGHT),))), wire)
    assert lived.second == "done"


@pytest.mark.parametrize("wire", WIRES)
async def test_a_broken_call_beside_a_good_one_does_not_bend_it(
    tmp_path: Path, wire: WireName
) -> None:
    step = calls_many(call(WRITE, RIGHT), Call(name=WRITE, raw='{"path": "out/wr'))
    lived = await live(tmp_path, calling(step), wire)
    assert lived.second == "done"


@pytest.mark.parametrize("wire", WIRES)
async def test_a_hundred_calls_at_once_are_all_answered(tmp_path: Path, wire: WireName) -> None:
    step = calls_many(*(("read_file", {"path": f"{number}.txt"}) for number in range(100)))
    lived = await live(tmp_path, calling(step), wire)
    assert lived.second == "done"


@pytest.mark.parametrize("wire", WIRES)
async def test_a_call_that_never_comes_right_ends_the_turn(tmp_path: Path, wire: WireName) -> None:
    def always(_step: Step) -> Step:
        return calls("fly", to="the moon")

    lived = await live(tmp_path, always, wire)
    assert (lived.first, lived.second) == (INVALID, "done")
