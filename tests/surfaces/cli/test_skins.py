"""Skins: those that come along are whole, and a file of one's own cannot break anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.errors import NotFound, UsageError
from hermes.surfaces.cli.chat.screen import Paint
from hermes.surfaces.cli.chat.skin import (
    DEFAULT,
    built_in_skins,
    colour_code,
    find_skin,
    is_colour,
    skin_names,
)


def own(home: Path, text: str) -> None:
    (home / "skins").mkdir(exist_ok=True)
    (home / "skins" / "mine.yaml").write_text(text)


@pytest.mark.parametrize("name", built_in_skins())
def test_every_skin_has_true_colours_and_a_prompt(name: str) -> None:
    skin = built_in_skins()[name]
    assert all(is_colour(colour) for colour in skin.colors.values())
    assert skin.description and skin.branding.prompt_symbol


def test_colours_become_codes() -> None:
    assert colour_code("red") == "31"
    assert colour_code("#ff0000") == "38;5;196"
    assert colour_code("") == ""
    assert not is_colour("rouge")


def test_a_skin_changes_what_is_painted_and_can_be_taken_off() -> None:
    paint = Paint(colours=True)
    paint.apply_skin(built_in_skins()["plain"])
    assert paint("careful", "error") == "careful"
    paint.apply_skin(built_in_skins()["slate"])
    assert paint("title", "bold") == "\x1b[1;38;5;153mtitle\x1b[0m"
    paint.apply_skin(DEFAULT)
    assert paint("careful", "error") == "\x1b[31mcareful\x1b[0m"


def test_a_file_of_ones_own_wins_and_is_completed(tmp_path: Path) -> None:
    own(
        tmp_path,
        "colors: {ui_accent: '#00ff00', ui_ok: rouge, ui_warn: 7}\n"
        "spinner: {thinking_verbs: [hum], frames: 3}\nbranding: sign\nbanner_logo: x\n",
    )
    skin = find_skin("mine", tmp_path)
    assert skin.colors == {"ui_accent": "#00ff00"}
    assert skin.spinner.thinking_verbs == ("hum",)
    assert skin.spinner.frames == DEFAULT.spinner.frames
    assert skin.branding == DEFAULT.branding
    assert "mine" in skin_names(tmp_path)


@pytest.mark.parametrize("text", ["", "- a list\n", "words: maybe\n"])
def test_a_file_without_a_skin_is_the_default(tmp_path: Path, text: str) -> None:
    own(tmp_path, text)
    skin = find_skin("mine", tmp_path)
    assert (skin.colors, skin.spinner, skin.words) == ({}, DEFAULT.spinner, False)


def test_what_cannot_be_read_or_is_not_there_is_said(tmp_path: Path) -> None:
    own(tmp_path, "colors: {")
    with pytest.raises(UsageError, match="cannot be read"):
        find_skin("mine", tmp_path)
    with pytest.raises(NotFound, match="choose one of default, plain"):
        find_skin("../mine", tmp_path)
