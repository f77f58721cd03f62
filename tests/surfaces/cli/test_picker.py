"""The list to choose from, driven by its keys."""

from __future__ import annotations

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from hermes.surfaces.cli.command_context import PickerRow
from hermes.surfaces.cli.picker import Picker

FRUIT = tuple(
    PickerRow(text=name, value=name) for name in ("apple", "banana", "cherry", "blue berry")
)


async def press(picker: Picker, keys: str) -> str | None:
    with create_pipe_input() as typed:
        typed.send_text(keys)
        return await picker.run(input=typed, output=DummyOutput())


@pytest.mark.parametrize(
    ("keys", "taken"),
    [
        ("\r", "apple"),
        ("\x1b[B\x1b[B\r", "cherry"),
        ("\x1b[B\x1b[A\x1b[A\r", "apple"),
        ("an\r", "banana"),
        ("berry blue\r", "blue berry"),
        ("xyz\x7f\x7f\x7fch\r", "cherry"),
        ("zzz\x15\r", "apple"),
        ("\x1b[6~\r", "blue berry"),
        ("\x1b", None),
        ("zzz\r\x04", None),
    ],
)
async def test_keys_move_search_take_and_leave(keys: str, taken: str | None) -> None:
    assert await press(Picker("Fruit", FRUIT), keys) == taken


async def test_it_begins_at_what_is_chosen_now() -> None:
    assert await press(Picker("Fruit", FRUIT, chosen="cherry"), "\r") == "cherry"


async def test_what_was_typed_may_be_an_answer_of_its_own() -> None:
    def as_typed(text: str) -> PickerRow:
        return PickerRow(text=f"use {text}", value=text)

    assert await press(Picker("Fruit", FRUIT, as_typed=as_typed), "durian\r") == "durian"
    assert await press(Picker("Fruit", FRUIT, as_typed=as_typed), "apple\r") == "apple"


async def test_ctrl_c_leaves_the_list_and_all_that_it_is_a_part_of() -> None:
    with pytest.raises(KeyboardInterrupt):
        await press(Picker("Fruit", FRUIT), "\x03")
