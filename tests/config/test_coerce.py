"""From what is written to what is meant."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from hermes.config.schema import WrongType, from_data, from_text, guess_value

Bounded = Annotated[int, Meta(ge=1)]
Choice = Literal["manual", "off"]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Bounded, "5", 5),
        (Bounded | None, "null", None),
        (Bounded | None, "7", 7),
        (float, "2.5", 2.5),
        (float, "3", 3.0),
        (bool, "true", True),
        (bool, "ON", True),
        (bool, "0", False),
        (str, "123", "123"),
        (str, "null", "null"),
        (str, "", ""),
        (Choice, "off", "off"),
        (tuple[str, ...], "a, b", ("a", "b")),
        (tuple[str, ...], '["a,b", "c"]', ("a,b", "c")),
        (tuple[str, ...], "[]", ()),
        (dict[str, str], '{"a": "b"}', {"a": "b"}),
    ],
)
def test_typed_text_becomes_a_value(kind: Any, text: str, value: object) -> None:
    assert from_text(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        (Bounded, "abc", "must be a whole number from 1"),
        (Bounded, "0", "must be a whole number from 1"),
        (Bounded, "2.5", "must be a whole number from 1"),
        (Bounded, "", "must be a whole number from 1"),
        (bool, "maybe", "must be true or false"),
        (Choice, "smart", "must be one of manual, off"),
        (dict[str, str], "x", "must be a mapping"),
    ],
)
def test_text_of_the_wrong_kind_is_reported_in_words(kind: Any, text: str, words: str) -> None:
    with pytest.raises(WrongType, match=words):
        from_text(kind, text)


def test_data_is_taken_as_it_is_but_for_words_of_truth() -> None:
    assert from_data(bool, "yes") is True
    assert from_data(Choice, False) == "off"
    assert from_data(Literal["", "none", "low"], "off") == "none"
    assert from_data(Literal["", "none", "low"], False) == "none"
    assert from_data(tuple[str, ...], ["a", 8080]) == ("a", "8080")
    for kind, value in ((bool, 1), (int, "5"), (str, 5), (tuple[str, ...], "a"), (int, True)):
        with pytest.raises(WrongType):
            from_data(kind, value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("2.5", 2.5),
        ("true", True),
        ("off", False),
        ("null", None),
        ('["a", 1]', ["a", 1]),
        ("words", "words"),
    ],
)
def test_without_a_schema_the_kind_is_guessed(text: str, value: object) -> None:
    assert guess_value(text) == value
