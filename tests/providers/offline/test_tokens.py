"""Tokens keep their place, their kind and, where misspelt, what they may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.providers.offline.language import TextToken, tokenise
from hermes.providers.offline.phrases import distance, near_words


def kinds(text: str) -> list[tuple[str, str]]:
    return [(token.text, token.kind) for token in tokenise(text, {"what's": "what is"})]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("notes.txt", "path"),
        ("src/", "path"),
        ("~", "path"),
        ("..", "path"),
        ("../..", "path"),
        (".gitignore", "path"),
        ("a.tar.gz", "path"),
        ("*.py", "glob"),
        ("test_?.py", "glob"),
        ("https://x.org/a", "url"),
        ("42", "number"),
        ("#3", "number"),
        ("1,000", "number"),
        ("2*3", "word"),
        ("4/2", "word"),
        ("hello", "word"),
        ("and/or", "word"),
        ("don't", "word"),
        ("-la", "word"),
    ],
)
def test_a_word_has_a_kind_by_its_looks(text: str, kind: str) -> None:
    assert kinds(text) == [(text, kind)]


def test_punctuation_is_apart_from_the_word_before_it() -> None:
    assert kinds("read notes.txt, then stop!") == [
        ("read", "word"),
        ("notes.txt", "path"),
        (",", "mark"),
        ("then", "word"),
        ("stop", "word"),
        ("!", "mark"),
    ]


def test_quotes_hold_words_together_and_an_apostrophe_does_not() -> None:
    assert kinds("it's 'a b' \"c d\" `e f` “g h”") == [
        ("it's", "word"),
        ("a b", "quoted"),
        ("c d", "quoted"),
        ("e f", "quoted"),
        ("g h", "quoted"),
    ]


def test_a_fenced_block_is_one_quoted_token() -> None:
    assert kinds("run\n```sh\nls\npwd\n```")[-1] == ("ls\npwd", "quoted")


def test_contractions_are_spelled_out_at_the_same_place() -> None:
    what, is_, here = tokenise("What's here", {"what's": "what is"})
    assert (what.word, is_.word, here.word) == ("what", "is", "here")
    assert (what.start, what.end) == (is_.start, is_.end) == (0, 6)


@given(st.text(max_size=120))
def test_every_token_says_where_it_stands(text: str) -> None:
    before = 0
    for token in tokenise(text, {}):
        assert before <= token.start < token.end <= len(text)
        assert token.kind == "quoted" or text[token.start : token.end] == token.text
        before = token.end


@pytest.mark.parametrize("text", ["1" * 50_000 + "x", "a." * 20_000, "(" * 30_000, "'" * 30_000])
def test_very_long_words_cost_no_more_than_their_length(text: str) -> None:
    assert all(isinstance(token, TextToken) for token in tokenise(text, {}))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("raed", "read"),
        ("lsit", "list"),
        ("fiels", "files"),
        ("hepl", "help"),
        ("helo", "hello"),
        ("serach", "search"),
        ("bigest", "biggest"),
        ("direktory", "directory"),
        ("backgruond", "background"),
    ],
)
def test_a_misspelt_word_is_near_the_right_one(word: str, expected: str) -> None:
    known = [
        "read",
        "list",
        "files",
        "help",
        "hello",
        "search",
        "biggest",
        "directory",
        "background",
    ]
    assert near_words(word, known)[0] == expected


@pytest.mark.parametrize(
    ("word", "other"), [("mind", "find"), ("bind", "find"), ("cat", "car"), ("reaf", "read")]
)
def test_short_words_are_not_bent_into_others(word: str, other: str) -> None:
    assert near_words(word, [other]) == ()


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_the_distance_is_the_same_in_both_directions(one: str, two: str) -> None:
    assert distance(one, two, 9) == distance(two, one, 9)
    assert (distance(one, two, 9) == 0) == (one == two)
