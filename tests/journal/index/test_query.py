"""What a query means."""

from __future__ import annotations

import random
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.journal.index.query import LONGEST_QUERY, MOST_CLAUSES, Atom, QueryClause, loosen, parse


def shapes(query: str) -> list[tuple[str, str, list[str]]]:
    """Rule, word and ways of looking up of each clause."""
    return [(c.rule, c.word, [f"{a.how}:{a.text}" for a in c.atoms]) for c in parse(query)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Deployed", [("may", "deployed", ["forms:deploy"])]),
        ("the cat", [("may", "the", ["exact:the"]), ("may", "cat", ["exact:cat"])]),
        ("jour*", [("may", "jour", ["prefix:jour"])]),
        ("read_fil", [("may", "read_fil", ["exact:read", "prefix:fil"])]),
        ("a.b.c", [("may", "a.b.c", ["exact:a", "exact:b", "prefix:c"])]),
        ('"two words"', [("must", "two words", ["exact:two", "exact:words"])]),
        ('"two wor*"', [("must", "two wor", ["exact:two", "prefix:wor"])]),
        ("“curly quotes”", [("must", "curly quotes", ["exact:curly", "exact:quotes"])]),
        ("数据库", [("may", "数据库", ["exact:数据", "exact:据库"])]),
        ("猫", [("may", "猫", ["prefix:猫"])]),
        ("red AND blue", [("must", "red", ["exact:red"]), ("must", "blue", ["forms:blue"])]),
        ("red NOT blue", [("may", "red", ["exact:red"]), ("not", "blue", ["forms:blue"])]),
        ("red OR tea", [("may", "red", ["exact:red"]), ("may", "tea", ["exact:tea"])]),
        ("red red", [("may", "red", ["exact:red"])]),
        ('un"balanced', [("may", "un", ["exact:un"]), ("may", "balanced", ["forms:balanc"])]),
        ("+foo {bar} (baz):^", [("may", w, [f"exact:{w}"]) for w in ("foo", "bar", "baz")]),
    ],
)
def test_queries_and_their_clauses(query: str, expected: list[tuple[str, str, list[str]]]) -> None:
    assert shapes(query) == expected


@pytest.mark.parametrize(
    "query", ["", "  ", "*", "***", '"', '""', "AND", "NOT", "NOT foo", "?!…", "+-"]
)
def test_queries_that_ask_for_nothing(query: str) -> None:
    assert parse(query) == ()


def test_a_long_run_is_asked_for_by_its_pairs() -> None:
    assert [clause.word for clause in parse("数据库迁移")] == ["数据", "据库", "库迁", "迁移"]


def test_a_word_can_be_loosened_once() -> None:
    (clause,) = parse("journ")
    (wide,) = loosen(clause)
    assert wide.atoms == (Atom(text="journ", how="part"),)
    assert loosen(wide) == []


def test_a_sequence_is_loosened_to_its_words() -> None:
    (clause,) = parse("ead_fil")
    wide, *words = loosen(clause)
    assert wide.atoms == (Atom(text="ead", how="part"), Atom(text="fil", how="prefix"))
    assert [word.word for word in words] == ["ead", "fil"]


def test_very_long_queries_are_cut() -> None:
    assert len(parse("word " * 5_000)) == 1
    many = " ".join(f"w{number}" for number in range(5_000))
    assert len(parse(many)) == MOST_CLAUSES
    (sequence,) = parse("/".join(f"w{number}" for number in range(5_000)))
    assert len(sequence.word) <= LONGEST_QUERY
    assert len(sequence.atoms) <= 16


@given(st.text(max_size=300))
def test_any_text_is_a_query(text: str) -> None:
    for clause in parse(text):
        assert_sound(clause)


def test_ten_thousand_random_strings_are_queries() -> None:
    chance = random.Random(11)
    signs = "\"*'()+-:^{}[]~\\/_. \n\t\0" + "aAzZ09éß数据猫がア한🚀\u200d\u0301\ud800" + "ANDORNOT"
    for _ in range(10_000):
        length = chance.randrange(40)
        any_sign = [chr(chance.randrange(sys.maxunicode)) for _ in range(3)]
        for clause in parse("".join(chance.choices(signs + "".join(any_sign), k=length))):
            assert_sound(clause)


def assert_sound(clause: QueryClause) -> None:
    assert clause.word
    assert clause.atoms
    assert all(atom.text and atom.text.encode() for atom in clause.atoms)
    assert all(isinstance(wide, QueryClause) for wide in loosen(clause))
