"""The data files: complete, well-formed, and the same sentences in every language."""

from __future__ import annotations

import re
from string import Formatter

import pytest

from hermes.providers.offline.language import AssistantLanguage, available_languages, load_language
from hermes.providers.offline.provider import PLANS, plan_for

ELEMENT = re.compile(r"(<\w+>|\{\w+[!'*]?\}|[^<>{}?|]+(\|[^<>{}?|]+)*)\??")
LEANING = {"again", "same_for"}


def patterns(language: AssistantLanguage) -> list[str]:
    return [text for kind in language.data.kinds for text in (*kind.patterns, *kind.extras)]


def elements(pattern: str) -> list[str]:
    return pattern.partition(" -> ")[0].split()


def fields(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name}


def test_english_and_german_are_there_with_enough_kinds() -> None:
    assert available_languages() == ("de", "en")
    assert len(load_language("en").kinds) >= 60
    assert len(load_language("de").kinds) >= 15


def test_an_unknown_language_is_answered_in_english() -> None:
    assert load_language("xx").data.code == "en"
    assert load_language("../en").data.code == "en"


@pytest.mark.parametrize("code", available_languages())
def test_every_element_of_every_pattern_is_well_formed(code: str) -> None:
    language = load_language(code)
    wrong = [e for text in patterns(language) for e in elements(text) if not ELEMENT.fullmatch(e)]
    assert wrong == []


@pytest.mark.parametrize("code", available_languages())
def test_every_class_that_a_pattern_names_exists_and_is_used(code: str) -> None:
    language = load_language(code)
    named = {e.strip("<>?") for text in patterns(language) for e in elements(text) if e[0] == "<"}
    assert named == set(language.data.words)


@pytest.mark.parametrize("code", available_languages())
def test_all_words_are_spelled_as_they_are_compared(code: str) -> None:
    data = load_language(code).data
    phrases = [*data.openers, *data.closers, *data.connectors, *data.fillers, *data.places]
    phrases += [*data.it, *data.there, *data.expand, *data.numbers, *data.ordinals]
    phrases += [phrase for group in data.words.values() for phrase in group]
    plain = [
        e for text in patterns(load_language(code)) for e in elements(text) if e[0] not in "<{"
    ]
    variables = {"-V"}
    odd = [p for p in (*phrases, *plain) if p != p.casefold() and p not in variables]
    assert odd == []


@pytest.mark.parametrize("code", available_languages())
def test_every_kind_has_a_plan_a_group_and_an_example(code: str) -> None:
    for kind in load_language(code).data.kinds:
        assert kind.name in LEANING or callable(plan_for(kind.name))
        assert kind.group in load_language(code).data.groups
        assert kind.examples


def test_every_plan_has_a_kind() -> None:
    assert set(PLANS) - {"nothing_before"} == set(load_language("en").kinds) - LEANING


def test_other_languages_say_what_english_says_with_the_same_facts() -> None:
    english = load_language("en").data.say
    german = load_language("de").data.say
    assert set(german) <= set(english)
    assert {key for key in german if fields(german[key]) != fields(english[key])} == set()


def test_other_languages_have_only_kinds_that_english_has() -> None:
    assert set(load_language("de").kinds) <= set(load_language("en").kinds)


def test_every_needed_slot_can_be_asked_for() -> None:
    for kind in load_language("en").data.kinds:
        for name in kind.needs:
            assert f"ask.{name}" in load_language("en").data.say
            assert f"ask.{name}.plainly" in load_language("en").data.say
