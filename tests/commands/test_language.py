"""What Hermes says in other languages than English."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

import hermes
from hermes.codec.json import decode
from hermes.commands.language import ENGLISH, FOLDER, LanguageFile, list_languages, load_language
from hermes.config.schema import find_setting
from hermes.config.settings import Settings

OTHERS = [name for name in list_languages() if name != "en"]
SOURCE = Path(hermes.__file__).parent


def written(name: str) -> LanguageFile:
    return decode(LanguageFile, (FOLDER / f"{name}.json").read_bytes())


def places(text: str) -> list[str]:
    return sorted(re.findall(r"\{\w*\}", text))


def test_the_setting_knows_every_language_there_is() -> None:
    setting = find_setting(Settings, ("display", "language"))
    assert setting is not None
    assert sorted(get_args(setting.kind)) == sorted(list_languages())


def test_every_language_says_the_same_sentences() -> None:
    said = {name: set(written(name).phrases) for name in OTHERS}
    every = set().union(*said.values())
    lacking = {name: every - own for name, own in said.items() if every != own}
    assert not lacking, f"translate these sentences in commands/languages too: {lacking}"


@pytest.mark.parametrize("name", OTHERS)
def test_no_sentence_loses_a_fact_or_is_left_out(name: str) -> None:
    for english, phrase in written(name).phrases.items():
        assert phrase.strip(), english
        assert places(phrase) == places(english), english


def test_every_sentence_is_one_that_is_said() -> None:
    files = [*(SOURCE / "commands").rglob("*.py"), *(SOURCE / "surfaces" / "cli").rglob("*.py")]
    source = "\n".join(file.read_text() for file in files)
    unsaid = [
        english
        for english in written(OTHERS[0]).phrases
        if f'"{english}"' not in source and f"'{english}'" not in source
    ]
    # How long an allowance lasts is named by the policy.
    assert unsaid == ["always"], (
        "the code does not have these sentences: change or remove them in commands/languages/*.json"
    )


def test_a_sentence_with_its_facts() -> None:
    say = load_language("de")
    assert say("Duration: {time}", time="3s") == "Dauer: 3s"
    assert say("Nobody has {translated} this.") == "Nobody has {translated} this."
    assert ENGLISH("Duration: {time}", time="{3s}") == "Duration: {3s}"


@pytest.mark.parametrize("name", ["en", "xx", "../de"])
def test_what_is_not_there_is_english(name: str) -> None:
    assert load_language(name) is ENGLISH
