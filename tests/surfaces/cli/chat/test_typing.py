"""The input of the real program: completion, history, pastes, pictures, the person's own editor."""

from __future__ import annotations

import re
from pathlib import Path

from hermes.testing.steps import says
from tests.surfaces.cli.chat.conftest import NewPane, Talk

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 16


def test_commands_and_their_arguments_are_completed(chat: Talk) -> None:
    pane = chat()
    pane.type("/sk")
    pane.wait_for("skills", "skin ", "List skins")
    pane.type("in pl")
    pane.wait_for("plain ", "Words only")
    pane.keys("Tab")
    pane.wait_for("❯ /skin plain")
    pane.keys("C-c")
    pane.type("/personality pi")
    pane.wait_for("pirate")


def test_files_are_completed_after_an_at_sign(chat: Talk) -> None:
    pane = chat()
    pane.type("look at @no")
    pane.wait_for("file:notes.txt", "18 bytes")
    pane.keys("Tab")
    pane.wait_for("❯ look at @file:notes.txt")


def test_what_was_typed_before_is_offered_and_found(new_pane: NewPane) -> None:
    pane = new_pane()
    pane.hermes()
    pane.say("what is 12 + 30")
    pane.wait_for("42")
    pane.wait_idle()
    pane.type("what")
    # Once as the message, and once as the suggestion.
    pane.wait(lambda text: text.count("❯ what is 12 + 30") == 2)
    pane.keys("Tab")
    pane.type("0")
    pane.wait_for("❯ what is 12 + 300")
    pane.keys("C-c")
    pane.wait_idle()
    pane.keys("C-r")
    pane.type("12 +")
    pane.wait_for("I-search backward: 12 +", "❯ what is 12 + 30")
    pane.keys("Enter")
    pane.wait(lambda text: "I-search" not in text)
    pane.keys("Enter")
    pane.wait(lambda text: text.count("12 + 30 = 42") == 2)


def test_the_editor_of_the_person_opens(new_pane: NewPane, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "what is 2 + 5" > "$1"\n')
    editor.chmod(0o755)
    pane = new_pane()
    pane.run(f"export VISUAL={editor}")
    pane.hermes()
    pane.type("draft")
    pane.keys("C-g")
    pane.wait_for("❯ what is 2 + 5")
    pane.keys("C-c")
    pane.wait_idle()
    pane.say("/prompt")
    pane.wait(lambda text: text.rstrip().endswith("❯ what is 2 + 5"))


def test_a_long_paste_is_kept_for_its_owner(new_pane: NewPane, tmp_path: Path) -> None:
    pane = new_pane(says("Read."))
    pane.hermes()
    pane.paste("\n".join(f"line {n}" for n in range(200)))
    pane.wait_for("[Pasted text #1: 200 lines]")
    pane.keys("Enter")
    pane.wait_for("Read.")
    (kept,) = (tmp_path / "home" / "pastes").iterdir()
    assert kept.read_text().startswith("line 0\nline 1\n")
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_picture_is_a_chip_in_the_input(new_pane: NewPane, project: Path) -> None:
    (project / "cat.png").write_bytes(PNG)
    pane = new_pane(says("A cat."))
    pane.hermes()
    pane.paste(str(project / "cat.png"))
    pane.wait_for("❯ [Image #1: cat.png]")
    pane.keys("C-c")
    pane.wait_idle()
    pane.say("/image cat.png")
    pane.wait_for("❯ [Image #2: cat.png]")
    pane.say("what is it?")
    shown = pane.wait_for("A cat.")
    assert re.search(r"❯ \[Image #2: cat\.png\] what is it\?\n", shown)


def test_a_picture_that_is_none_leaves_the_draft(new_pane: NewPane, project: Path) -> None:
    (project / "fake.png").write_text("no picture")
    (project / "lost.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    pane = new_pane(says("Never."))
    pane.hermes()
    pane.say("/image fake.png")
    shown = pane.wait_for("JPEG, GIF and WebP")
    assert "[Image #" not in shown
    pane.say("/image lost.png")
    pane.wait_for("❯ [Image #1: lost.png]")
    (project / "lost.png").write_text("no picture")
    pane.say("look")
    pane.wait_for("❯ [Image #1: lost.png] look")


def test_skins_change_signs_and_words_at_once(new_pane: NewPane, tmp_path: Path) -> None:
    pane = new_pane()
    pane.hermes()
    skins = tmp_path / "home" / "skins"
    skins.mkdir(parents=True)
    (skins / "mine.yaml").write_text(
        "branding: {prompt_symbol: '>>'}\ntool_prefix: '*'\ncolors: {ui_accent: nonsense}\n"
    )
    pane.say("/skin mine")
    pane.wait_for("mine:")
    pane.say("read notes.txt")
    pane.wait_for(">> read notes.txt", "* 📖 read      notes.txt", "remember the milk")
    pane.say("/skin plain")
    pane.wait_for("status: offline-assistant, ")
    pane.say("read notes.txt")
    pane.wait_for("\n> read notes.txt", "\ntool: read notes.txt")
    pane.say("/skin nosuch")
    pane.wait_for("There is no skin 'nosuch'")
