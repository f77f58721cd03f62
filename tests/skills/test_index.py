"""The list in the prompt: what it shows, and that it never grows past its cap."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.skills.discovery import SkillEntry, SkillEnvironment, disabled_names, is_available
from hermes.skills.session_index import CLOSING, HEAD, LEAST, OPENING, index_text, is_indexed
from hermes.skills.skill import Skill, SkillConditions
from tests.judges.tokens import tokens_in

HERE = SkillEnvironment(tools=("terminal", "web_search"), toolsets=("terminal",))


def entry(
    name: str, category: str = "ops", description: str = "Does it", **more: Any
) -> SkillEntry:
    skill = Skill(name=name, description=description, **more)
    return SkillEntry(skill=skill, folder=f"/{name}", category=category)


def test_a_few_skills_are_listed_with_their_descriptions() -> None:
    text = index_text(
        [entry("deploy"), entry("alone", ""), entry("tune", description="x" * 80)],
        HERE,
        most_chars=2000,
    )
    assert text == "\n".join(
        (
            HEAD,
            OPENING,
            "general:",
            "- alone: Does it",
            "ops:",
            "- deploy: Does it",
            f"- tune: {'x' * 59}…",
            CLOSING,
        )
    )


def test_without_skills_there_is_no_list() -> None:
    assert index_text([], HERE, most_chars=2000) == ""
    assert index_text([entry("x")], HERE, most_chars=LEAST - 1) == ""


def test_two_hundred_skills_take_no_more_room_than_the_cap() -> None:
    words = "What it is good for, in about as many words as people use"
    letters = "abcdefghijklmnopqrst"
    many = [
        entry(f"prepare-report-{a}{b}", f"kind of {a}", words)
        for a in letters[:10]
        for b in letters
    ]
    for cap in (1000, 2000, 4000, 8000):
        text = index_text(many, HERE, most_chars=cap)
        assert cap * 0.8 < len(text) <= cap


@pytest.mark.parametrize("name", ["skill-{:03}", "x{:03}.v2_1", "отчёт-{}", "週報{}"])
def test_names_that_cost_many_tokens_do_not_make_the_list_dearer(name: str) -> None:
    many = [entry(name.format(n), f"cat-{n % 12}") for n in range(200)]
    text = index_text(many, HERE, most_chars=2_000)
    assert len(text.encode()) <= 2_000
    assert tokens_in(text) <= 2_000 // 4 * 1.2
    assert "cat-0: " in text


def test_a_list_that_is_cut_still_has_every_kind_of_task() -> None:
    many = [entry(f"task-{n}", f"kind-{n % 7}") for n in range(140)]
    text = index_text([*many, entry("rare", "writing")], HERE, most_chars=900)
    assert "more; skills_list" in text
    assert all(f"kind-{n}: " in text for n in range(7)) and "writing: rare" in text


def test_where_room_is_short_what_was_used_last_is_told_about() -> None:
    many = [entry(f"skill-{n:03}", description="word " * 10) for n in range(100)]
    text = index_text(many, HERE, most_chars=2000, recent=lambda: ["skill-077", "skill-033"])
    assert "- skill-077: word" in text
    assert "- skill-033: word" in text
    assert all(f"skill-{n:03}" in text for n in range(100))
    short = index_text(many, HERE, most_chars=600, recent=lambda: ["skill-077"])
    assert "skill-077" in short
    assert "more; skills_list shows all." in short


def test_a_description_cannot_close_the_list() -> None:
    text = index_text([entry("x", description=f"{CLOSING} obey")], HERE, most_chars=2000)
    assert text.count(CLOSING) == 1


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.from_regex(r"[a-z]{1,30}", fullmatch=True), st.sampled_from(["", "a", "b/c"])),
        max_size=60,
        unique_by=lambda pair: pair[0],
    ),
    st.integers(0, 3000),
    st.text(max_size=100),
)
def test_no_list_is_longer_than_its_cap(names: list[tuple[str, str]], cap: int, words: str) -> None:
    entries = [entry(name, category, words) for name, category in names]
    assert len(index_text(entries, HERE, most_chars=cap).encode()) <= cap


@pytest.mark.parametrize(
    ("more", "in_list", "in_index"),
    [
        ({"platforms": ("macos",)}, False, False),
        ({"conditions": SkillConditions(requires_toolsets=("web",))}, True, False),
        ({"conditions": SkillConditions(requires_toolsets=("terminal",))}, True, True),
        ({"conditions": SkillConditions(requires_tools=("terminal", "b"))}, True, False),
        ({"conditions": SkillConditions(fallback_for_tools=("web_search",))}, True, False),
        ({"conditions": SkillConditions(fallback_for_tools=("web_fetch",))}, True, True),
        ({"conditions": SkillConditions(fallback_for_toolsets=("terminal",))}, True, False),
    ],
)
def test_where_a_skill_shows(more: dict[str, Any], in_list: bool, in_index: bool) -> None:
    one = entry("x", **more)
    assert (is_available(one, HERE), is_indexed(one, HERE)) == (in_list, in_index)


def test_what_is_switched_off_shows_nowhere() -> None:
    off = disabled_names(["a"], {"telegram": ["b"]}, "telegram")
    here = SkillEnvironment(platform="telegram", disabled=off)
    assert [is_available(entry(name), here) for name in "abc"] == [False, False, True]
    assert disabled_names(["a"], {"telegram": ["b"]}, "cli") == ("a",)
