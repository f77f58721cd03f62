"""Folding and cutting text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.journal.index.terms import LONGEST, fold, origins, pieces, terms


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Hello World", "hello world"),
        ("Café ÉCOLE naïve", "cafe ecole naive"),
        ("Straße GROẞ", "strasse gross"),
        ("Ångström Łódź søster", "angstrom lodz soster"),
        ("ＡＢＣ１２３ ﬁle", "abc123 file"),
        ("Ελληνικά ΣΟΦΟΣ", "ελληνικα σοφοσ"),
        ("Ещё Йод", "еще иод"),
        ("がぎ ｶﾞ", "がぎ ガ"),
        ("한국어", "한국어"),
        ("مَرْحَبًا", "مرحبا"),
        ("jour\u00adnal\u200b", "journal"),
    ],
)
def test_letters_are_folded_to_one_form(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("read_file(a.b.c) foo-bar", {"read", "file", "a", "b", "c", "foo", "bar"}),
        ("/src/app.py:12", {"src", "app", "py", "12"}),
        ("数据库", {"数据", "据库", "库"}),
        ("使用python编程", {"使用", "用", "python", "编程", "程"}),
        ("猫", {"猫"}),
        ("हिन्दी भाषा", {"हिन्दी", "भाषा"}),
        ("done 🚀✅", {"done", "🚀", "✅"}),
        ("... --- !!!", set()),
        ("", set()),
    ],
)
def test_terms_of_a_text(text: str, found: set[str]) -> None:
    assert terms(fold(text)) == found


def test_a_very_long_word_becomes_several_terms() -> None:
    assert {len(term) for term in terms("x" * (LONGEST * 2 + 5))} == {LONGEST, 5}


def test_pieces_keep_their_order_and_place() -> None:
    assert pieces("ab 数据 c") == [("ab", 0), ("数据", 3), ("c", 6)]


@given(st.text())
def test_terms_hold_no_sign_that_the_file_needs(text: str) -> None:
    assert all(term and "\n" not in term and term >= " " for term in terms(fold(text)))


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
def test_every_place_of_the_folded_text_comes_from_a_place_of_the_text(text: str) -> None:
    places = list(range(len(fold(text)) + 1))
    found = origins(text, places)
    assert len(found) == len(places)
    assert found == sorted(found)
    assert all(0 <= place <= len(text) for place in found)


@given(st.lists(st.sampled_from(["Größe ", "naïve ", "数据库", "e\u0301", "plain "]), max_size=900))
def test_a_word_is_found_again_where_it_was(words: list[str]) -> None:
    text = "".join(words) + "Schlüssel" + "".join(reversed(words))
    start = fold(text).index("schlussel")
    first, last = origins(text, [start, start + len("schlussel")])
    assert text[first:last] == "Schlüssel"
