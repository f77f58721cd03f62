"""What is looked for when somebody asks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.journal.index.query import Question, parse_question, soften

NOW = 1_700_000_000.0


def words(query: str) -> list[str]:
    return [clause.word for clause in parse_question(query, NOW).clauses]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What did Anna say about the boat?", ["anna", "say", "boat"]),
        ("Who are you?", ["who", "are", "you"]),
        ("the", ["the"]),
        ("Where's Anna’s dog?", ["anna", "dog"]),
        ("What didn't they buy?", ["buy"]),
        ("Did Will go?", ["will", "go"]),
        ("the half-marathon", ["half-marathon", "half", "marathon"]),
        ("src/app/main.py", ["src/app/main.py"]),
        ("数据库", ["数据库"]),
    ],
)
def test_small_words_are_left_out_unless_there_are_no_others(
    query: str, expected: list[str]
) -> None:
    assert words(query) == expected


def test_a_name_is_meant_as_it_stands() -> None:
    name, word = parse_question("What is Anna baking?", NOW).clauses
    assert (name.name, name.near, name.atoms[0].how) == (True, (), "exact")
    assert word.near
    assert not word.name


def test_words_in_quotes_are_a_wish_beside_others() -> None:
    assert [c.rule for c in parse_question('"blue fish"', NOW).clauses] == ["must"]
    asked = parse_question('Who painted "blue fish"?', NOW)
    assert {c.rule for c in asked.clauses} == {"may"}
    assert [c.word for c in asked.clauses] == ["painted", "blue fish", "blue", "fish"]


def test_softened_clauses_leave_all_as_a_wish() -> None:
    clauses = parse_question("red AND boat NOT paint", NOW).clauses
    assert [c.rule for c in clauses] == ["must", "must", "not"]
    assert [c.rule for c in soften(clauses)] == ["may", "may", "not"]


@pytest.mark.parametrize(
    ("query", "asks"),
    [
        ("When did it happen?", "time"),
        ("On which day was that?", "time"),
        ("How many boats are there?", "amount"),
        ("Who was it?", "anything"),
    ],
)
def test_the_kind_of_answer_is_known(query: str, asks: str) -> None:
    assert parse_question(query, NOW).asks == asks


def test_nothing_is_a_question_too() -> None:
    assert parse_question(" ?! ", NOW) == Question(clauses=())


@given(st.text(max_size=200))
def test_any_text_is_a_question(text: str) -> None:
    asked = parse_question(text, NOW)
    assert all(clause.atoms for clause in asked.clauses)
    assert len(asked.clauses) <= 200
