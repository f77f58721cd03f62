"""Interprets a question: drops stop words, adds near words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from hermes.codec.values import Value
from hermes.journal.index import forms, periods
from hermes.journal.index.lexicon import is_listed, is_stop_word, is_weak_word, related_words
from hermes.journal.index.periods import Period
from hermes.journal.index.query import Atom, Near, QueryClause, parse
from hermes.journal.index.spelling import SHORTEST, SHORTEST_NAME
from hermes.journal.index.words import fold

_HOW_MUCH = re.compile(r"how (many|much|long|often|far|old|fast|high|tall|big|close|heavy)\b")
_WHEN = re.compile(r"when\b|(what|which) (date|day|year|month|time)\b|since when|how long ago")
_SENTENCE_ENDS = ".!?:;"
_OWNER = re.compile(r"['’]s$|['’]$")
_WEAK = 0.5
_OTHER_GUESS = 0.7
_MOST_GUESSES = 4
_MARKS = "\"'’“”„«»()[]{}.,:;!?"

Asks = Literal["anything", "time", "amount"]


class Question(Value):
    """`asks` is the kind of answer that is wanted, `period` the time that the question names."""

    clauses: tuple[QueryClause, ...]
    asks: Asks = "anything"
    period: Period | None = None


def parse_question(query: str, now: float) -> Question:
    """Every string is a valid question."""
    clauses = parse(query)
    if not clauses:
        return Question(clauses=())
    names = _names(query)
    bare = any(clause.rule == "may" for clause in clauses)
    found = [clause for one in clauses for clause in _settle_quotes(one, names, bare)]
    telling = [clause for clause in found if not _says_nothing(clause, names)]
    sought = any(clause.rule != "not" for clause in telling)
    return Question(
        clauses=tuple(dict.fromkeys(telling if sought else found)),
        asks=_asks(query),
        period=periods.named_in(query, now),
    )


def soften(clauses: tuple[QueryClause, ...]) -> tuple[QueryClause, ...]:
    """The same clauses, all optional."""
    found: list[QueryClause] = []
    for clause in clauses:
        if clause.rule != "must":
            found.append(clause)
            continue
        wish = msgspec.structs.replace(clause, rule="may")
        alone = [msgspec.structs.replace(piece, rule="may") for piece in clause.pieces]
        found += [wish, *(piece for piece in alone if not is_stop_word(piece.word))]
    return tuple(dict.fromkeys(found))


def is_spelt_wrong(clause: QueryClause) -> bool:
    """Whether an unmatched clause may be misspelled: its word is in no dictionary."""
    word = clause.word
    plain = len(clause.atoms) == 1 and clause.left and clause.right and clause.rule != "not"
    shortest = SHORTEST_NAME if clause.name else SHORTEST
    return plain and len(word) >= shortest and word.isalpha() and not is_listed(word)


def respell(clause: QueryClause, words: Sequence[str]) -> QueryClause:
    """The same clause for the words that were probably meant, the first above all. Dictionary words
    are not taken for names."""
    telling = [word for word in words if not is_stop_word(word)]
    meant = [word for word in telling if not (clause.name and is_listed(word))][:_MOST_GUESSES]
    if not meant:
        return clause
    first, *others = meant
    stem = "" if clause.name else forms.stem(first)
    atom = Atom(text=stem, how="forms") if stem else Atom(text=first, how="exact")
    near = tuple(Near(atom=Atom(text=word, how="exact"), weight=_OTHER_GUESS) for word in others)
    return msgspec.structs.replace(clause, word=first, atoms=(atom,), stem=stem, near=near)


def _settle_quotes(clause: QueryClause, names: frozenset[str], bare: bool) -> list[QueryClause]:
    """Quoted words beside others are an optional clause; alone they are required. The parts of a
    hyphenated word also count alone."""
    if clause.rule == "must" and clause.pattern and bare:
        return [_add_near_words(one, names) for one in soften((clause,))]
    if clause.rule == "may" and "-" in clause.word and clause.pieces:
        parts = [piece for piece in clause.pieces if len(piece.word) > 2 and piece.word.isalpha()]
        return [clause, *(_add_near_words(part, names) for part in parts)]
    return [_add_near_words(clause, names)]


def _add_near_words(clause: QueryClause, names: frozenset[str]) -> QueryClause:
    """The clause with words that may replace it; a name has none."""
    if clause.rule == "not" or len(clause.atoms) != 1 or not clause.word.isalpha():
        return clause
    if clause.word in names:
        exact = Atom(text=clause.word, how="exact")
        return msgspec.structs.replace(clause, name=True, atoms=(exact,), stem="")
    if not clause.right or not clause.word.isascii():
        return clause
    known = related_words(clause.word)
    near = [Near(atom=_atom(word), weight=1.0) for word in known.forms]
    near += [Near(atom=_atom(word), weight=weight) for word, weight in known.near]
    weight = _WEAK if is_weak_word(clause.word) else 1.0
    return msgspec.structs.replace(clause, near=tuple(near), weight=weight)


def _atom(word: str) -> Atom:
    """A near word must be certain: a short stem has forms that are other words."""
    stem = forms.stem(word)
    return Atom(text=stem, how="forms") if len(stem) > 3 else Atom(text=word, how="exact")


def _says_nothing(clause: QueryClause, names: frozenset[str]) -> bool:
    return clause.rule == "may" and clause.word not in names and is_stop_word(clause.word)


def _names(query: str) -> frozenset[str]:
    """Capitalised words that do not begin a sentence."""
    found = set()
    begins = True
    for raw in query.split():
        word = _OWNER.sub("", raw.strip(_MARKS))
        owner = word != raw.strip(_MARKS)
        if begins:
            named = owner and not is_stop_word(fold(word))
        else:
            named = word not in ("AND", "OR", "NOT", "I")
        if named and word[:1].isupper():
            found.add(fold(word))
        begins = raw[-1] in _SENTENCE_ENDS
    return frozenset(found)


def _asks(query: str) -> Asks:
    low = query.lower()
    if _WHEN.search(low):
        return "time"
    return "amount" if _HOW_MUCH.search(low) else "anything"
