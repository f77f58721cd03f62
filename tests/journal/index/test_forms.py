"""Forms of words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.journal.index.terms import is_form, stem


@pytest.mark.parametrize(
    "family",
    [
        "deploy deploys deployed deploying deployment deployments",
        "migrate migrates migrated migrating migration migrations",
        "library libraries",
        "stopped stopping",
        "index indexes indexed indexing indexer",
        "server servers",
        "invoice invoices invoiced",
        "meeting meetings",
        "файлы файла файлов файле",
        "änderung änderungen",
    ],
)
def test_forms_of_a_word_are_known_as_such(family: str) -> None:
    words = [word.replace("ä", "a") for word in family.split()]
    root = stem(words[0])
    assert all(other.startswith(root) and is_form(root, other) for other in words)


@pytest.mark.parametrize(
    ("word", "other"), [("data", "date"), ("port", "portal's"), ("test", "tea")]
)
def test_other_words_are_not_forms(word: str, other: str) -> None:
    root = stem(word)
    assert not (other.startswith(root) and is_form(root, other))


@pytest.mark.parametrize("word", ["", "a", "cat", "a1b2", "2026", "x86"])
def test_short_words_and_codes_have_no_forms(word: str) -> None:
    assert stem(word) == ""


@given(st.text(alphabet="abcdeginrstyуыаиеов", min_size=4, max_size=14))
def test_a_word_is_a_form_of_its_own_stem(word: str) -> None:
    root = stem(word)
    assert word.startswith(root)
    assert is_form(root, word)
