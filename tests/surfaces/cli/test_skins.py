"""Skins: those that come along are whole, and a file of one's own cannot break anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.effects import WritePath
from hermes.core.errors import NotFound, UsageError
from hermes.core.events import ApprovalAsked
from hermes.core.messages import ToolResult
from hermes.surfaces.cli.chat.approval_panel import ApprovalPanel
from hermes.surfaces.cli.chat.cells import COLOUR
from hermes.surfaces.cli.chat.questions import OpenQuestion
from hermes.surfaces.cli.chat.reply import StreamedReply
from hermes.surfaces.cli.chat.screen import ROLES, Paint
from hermes.surfaces.cli.chat.skin import (
    DEFAULT,
    built_in_skins,
    colour_code,
    find_skin,
    is_colour,
    skin_names,
)
from hermes.surfaces.cli.chat.tool_lines import todo_lines
from hermes.tools.files.edits import FileEdit


def own(home: Path, text: str) -> None:
    (home / "skins").mkdir(exist_ok=True)
    (home / "skins" / "mine.yaml").write_text(text)


@pytest.mark.parametrize("name", built_in_skins())
def test_every_skin_has_true_colours_and_a_prompt(name: str) -> None:
    skin = built_in_skins()[name]
    assert all(is_colour(colour) for colour in skin.colors.values())
    assert skin.description and skin.branding.prompt_symbol


@pytest.mark.parametrize("name", built_in_skins())
def test_every_skin_has_a_colour_for_every_role(name: str) -> None:
    paint = Paint(colours=True)
    paint.apply_skin(built_in_skins()[name])
    keys = {key for _, key in ROLES.values() if key}
    assert set(built_in_skins()[name].colors) <= keys, "a key that nothing uses"
    if name not in ("plain", "mono"):
        assert all(paint.code(role) for role in ROLES)


def test_the_skin_for_screen_readers_has_no_frames_and_says_what_colours_say() -> None:
    paint = Paint(colours=True)
    paint.apply_skin(built_in_skins()["plain"])
    asked = ApprovalAsked(
        id="q",
        call_id="c",
        effect=WritePath(path="/x.py"),
        reason="It writes.",
        category="overwrite",
        scopes=("once",),
        expires_seconds=60,
    )
    edit = FileEdit(path="/x.py", name="/x.py", before=b"old\n", after=b"new\n")
    tasks = [{"content": "a", "status": "completed"}, {"content": "b", "status": "pending"}]
    result = ToolResult(call_id="1", name="todo", parts=(), details={"todos": tasks})
    reply = StreamedReply("render", paint)
    rows = reply.feed("# Title\n\n```python\nx = 1\n```\n\n| a | b |\n|--|--|\n| 1 | 2 |\n\n", 60)
    texts = [
        ApprovalPanel(asked, paint, 60, (edit,)).text(),
        *OpenQuestion(asked, now=0).rows(paint, 60, now=0),
        *todo_lines(result.details, paint, 60),
        *rows,
    ]
    shown = COLOUR.sub("", "\n".join(texts))
    assert not set(shown) & set("╭╮╰╯│┼▎┊☐☑▸⚠")
    for words in ("question: Write this file?", "removed 1: old", "added 1: new", "done: a"):
        assert words in shown
    assert "to do: b" in shown and "```python" in shown


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
