"""Whatever form a copy has, it is found."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.memory.phrases import MARK, Phrases

TEXT = 'The "code" of Zoë\'s door is 4711\nand it is the one behind the house'
letters = st.text(
    st.characters(blacklist_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=4, max_size=12
)
texts = st.lists(letters, min_size=2, max_size=12).map(" ".join)


@pytest.mark.parametrize(
    "copy",
    [
        TEXT,
        TEXT.upper(),
        " ".join(TEXT.split()),
        json.dumps(TEXT)[1:-1],
        json.dumps(json.dumps({"a": TEXT}))[1:-1],
        json.dumps(TEXT, ensure_ascii=False)[1:-1],
    ],
)
def test_a_copy_in_any_form_is_found(copy: str) -> None:
    rest = Phrases([TEXT]).remove_phrases(f"before {copy} after")
    assert "4711" not in rest
    assert rest.startswith("before ") and rest.endswith(" after") and MARK in rest


def test_a_copy_that_was_cut_short_is_found() -> None:
    phrases = Phrases([TEXT])
    assert phrases.remove_phrases(f"so: {TEXT[:40]}…") == f"so: {MARK}…"
    assert phrases.remove_phrases(TEXT[:40]) == MARK


def test_what_only_begins_alike_stays() -> None:
    other = "The “code” of the other door is blue"
    assert Phrases([TEXT]).remove_phrases(other) == other
    kept = "User's favourite editor is Emacs"
    assert Phrases(["User's favourite editor is Vim"]).remove_phrases(kept) == kept


def test_a_word_inside_of_another_stays() -> None:
    assert (
        Phrases(["cats"]).remove_phrases("scatstep and cats, cats")
        == f"scatstep and {MARK}, {MARK}"
    )


def test_other_words_for_it_are_found_where_it_was_said() -> None:
    phrases = Phrases(["User's PIN is 4711"])
    said = "Please remember my PIN: 4711! And buy milk."
    assert phrases.remove_phrases(said, near=True) == f"{MARK} And buy milk."
    assert phrases.remove_phrases("PIN is 4711", near=True) == MARK
    assert phrases.remove_phrases("And buy milk.", near=True) == "And buy milk."


@given(texts, st.booleans())
def test_no_nesting_hides_it(text: str, ascii_only: bool) -> None:
    phrases = Phrases([text])
    once = json.dumps({"a": ["x", text]}, ensure_ascii=ascii_only)
    twice = json.dumps({"b": once}, ensure_ascii=ascii_only)
    for form in (text, once, twice):
        rest = phrases.remove_phrases(form)
        assert phrases.remove_phrases(rest) == rest
        assert MARK in rest
    assert text not in phrases.remove_phrases(once)
    assert json.loads(phrases.remove_phrases(once))["a"][0] == "x"
