"""German: another language is a data file, and a request decides by itself which one it is."""

from __future__ import annotations

import pytest

from hermes.providers.offline.language import load_language
from hermes.providers.offline.plan import Phrasebook
from tests.providers.offline.talk import Talk, ran, shown

WORDINGS = {
    "zeige mir bitte die Dateien in src": "ls -1p src",
    "könntest du die Dateien auflisten?": "ls -1p",
    "was liegt in docs?": "ls -1p docs",
    "finde die größte Datei": "ls -lAS",
    "welche ist die älteste Datei in docs?": "ls -lAtr docs",
    "wie groß ist dieser Ordner?": "du -sh .",
    "wann wurde setup.py geändert?": "ls -ld setup.py",
    "zeige die letzten 20 Zeilen von server.log": "tail -n 20 server.log",
    "lösche alt.txt": "rm alt.txt",
    "entferne den Ordner build": "rm -r build",
    "benenne a.txt in b.txt um": "mv -nv a.txt b.txt",
    "kopiere a.txt nach b.txt": "cp -Rnv a.txt b.txt",
    "vergleiche a.txt mit b.txt": "diff -u a.txt b.txt",
    "führe `make test` aus": "make test",
    "zeige den git status": "git status --short --branch",
    "wo bin ich?": "pwd",
    "wie spät ist es?": "date",
    "wie viel Speicherplatz ist noch frei?": "df -h .",
}


@pytest.mark.parametrize(("text", "command"), WORDINGS.items())
async def test_german_requests_lead_to_the_same_commands(text: str, command: str) -> None:
    assert (await Talk("de").say(text)).calls == (("terminal", {"command": command}),)


async def test_steps_and_references_work_in_german_too() -> None:
    turn = await Talk("de").say(
        "erstelle a.txt mit hallo und lies sie", ran(), ran("ok"), shown(["hallo"])
    )
    assert [name for name, _ in turn.calls] == ["terminal", "write_file", "read_file"]
    assert turn.text.startswith("Ich habe eine Zeile in `a.txt` geschrieben.")


async def test_german_numbers_have_a_comma() -> None:
    assert (await Talk("de").say("was ist 2,5 mal 3?")).text == "2,5 mal 3 = 7,5"


async def test_a_request_in_another_language_is_answered_in_that_language() -> None:
    turn = await Talk("en").say("zeige mir die Dateien hier", ran("a.txt"))
    assert turn.text == "Ein Eintrag in diesem Ordner:\n\n- `a.txt`"
    assert (await Talk("de").say("list the files here", ran("a.txt"))).text == (
        "One entry in this folder:\n\n- `a.txt`"
    )


@pytest.mark.parametrize("text", ["lösche nicht a.txt", "schreibe ein Gedicht", "lösch alles weg"])
async def test_what_is_not_understood_in_german_is_not_guessed_at(text: str) -> None:
    turn = await Talk("de").say(text)
    assert turn.calls == ()
    assert turn.text.startswith("Das kann ich ohne Sprachmodell nicht.")


def test_a_sentence_that_german_lacks_is_said_in_english() -> None:
    assert "how_are_you" not in load_language("de").data.say
    assert Phrasebook(load_language("de"))("how_are_you") == Phrasebook(load_language("en"))(
        "how_are_you"
    )
