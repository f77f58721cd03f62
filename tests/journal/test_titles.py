"""Titles are clean, short and numbered."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import UsageError
from hermes.journal.listing import parse_age, parse_date
from hermes.journal.titles import clean_title, lineage_name


@given(st.text(max_size=100))
def test_a_clean_title_shows_what_it_is(text: str) -> None:
    title = clean_title(text)
    assert clean_title(title) == title
    assert title == " ".join(title.split())
    assert not {unicodedata.category(char) for char in title} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_a_title_has_a_hundred_characters_at_most() -> None:
    assert clean_title(" " + "x" * 100 + "\u200b\n") == "x" * 100
    with pytest.raises(UsageError):
        clean_title("x" * 101)


@pytest.mark.parametrize(
    ("title", "name"),
    [("plan", "plan"), ("plan #2", "plan"), ("plan #x", "plan #x"), ("#2", "#2"), (" #2", " #2")],
)
def test_the_name_behind_a_number(title: str, name: str) -> None:
    assert lineage_name(title) == name


@pytest.mark.parametrize(
    ("text", "days"), [("90", 90), ("30d", 30), ("12h", 0.5), ("2w", 14), (" 1.5D ", 1.5)]
)
def test_ages(text: str, days: float) -> None:
    assert parse_age(text) == days * 86_400


@pytest.mark.parametrize("text", ["", "d", "-3d", "3 months", "1y", "nan"])
def test_what_is_no_age(text: str) -> None:
    with pytest.raises(UsageError, match="not an age"):
        parse_age(text)


def test_dates() -> None:
    assert parse_date("2026-05-01T00:00:00+00:00") == 1_777_593_600
    assert parse_date("2026-05-02T00:00Z") - parse_date("2026-05-01T00:00Z") == 86_400
    with pytest.raises(UsageError, match="not a date"):
        parse_date("yesterday")
