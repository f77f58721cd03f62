"""Parses queries and questions into clauses. Every string is a valid query."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from hermes.codec.values import Value, replace
from hermes.journal.index import filters as periods
from hermes.journal.index import terms as forms
from hermes.journal.index.filters import Period
from hermes.journal.index.terms import (
    SHORTEST,
    SHORTEST_NAME,
    fold,
    is_dense,
    is_listed,
    is_stop_word,
    is_weak_word,
    pairs,
    pieces,
    related_words,
)

LONGEST_QUERY = 2_000
MOST_CLAUSES = 32
_LONGEST_DENSE_UNIT = 4
_MOST_ATOMS = 16
_INSIDE_WORD = 0.5

_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»", '"'))
_CHUNK = re.compile(r'"(?P<quoted>[^"]*)"|(?P<bare>[^\s"]+)')
# Possessives and contractions.
_APOSTROPHE = re.compile(r"['’](?:s\b|(?=\W*$))|(?<=n)['’](?=t\b)|['’](?=(?:ve|re|ll|d|m)\b)")
GAP = r"[\W_]{1,8}"
"""What may separate the words of a phrase."""

How = Literal["forms", "exact", "prefix", "part"]
Rule = Literal["may", "must", "not"]
_OPERATORS: dict[str, Rule] = {"AND": "must", "OR": "may", "NOT": "not"}


class Atom(Value):
    """Terms that are looked up together: all forms of a stem, one term, all with a prefix, or all
    that contain a part."""

    text: str
    how: How


class QueryClause(Value):
    """One clause of the query. A message matches when it has all atoms and its folded text holds
    the word, or the pattern of a phrase."""

    atoms: tuple[Atom, ...]
    word: str
    pattern: str = ""
    # With a stem, any form of the word matches.
    stem: str = ""
    # Whether the match must begin and end at a word boundary.
    left: bool = True
    right: bool = True
    # The weight of a match inside of a word.
    inside_weight: float = 1.0
    rule: Rule = "may"
    # A message that has the pieces but not the whole gets a low score.
    pieces: tuple[QueryClause, ...] = ()
    # Words that may replace this one, with their weights.
    near: tuple[tuple[Atom, float], ...] = ()
    # Whether it is the name of a person, which concerns the whole session.
    name: bool = False
    # Relative to other clauses of the same rarity.
    weight: float = 1.0


def parse(query: str) -> tuple[QueryClause, ...]:
    """Parse a query. Quoted words are a phrase; `word*` is a prefix; AND, OR and NOT work in
    capitals; all other characters only separate."""
    text = query[:LONGEST_QUERY].encode("utf-8", "replace").decode().translate(_QUOTES)
    clauses: list[QueryClause] = []
    pending: Rule = "may"
    for chunk in _CHUNK.finditer(text):
        bare = chunk["bare"]
        if bare in ("AND", "OR", "NOT"):
            # AND also applies to the clause before it.
            if bare == "AND" and clauses and clauses[-1].rule == "may":
                clauses[-1] = replace(clauses[-1], rule="must")
            pending = _OPERATORS[bare]
            continue
        found = _bare(bare) if bare is not None else _quoted(chunk["quoted"])
        clauses += found if pending == "may" else [replace(one, rule=pending) for one in found]
        pending = "may"
    unique = list(dict.fromkeys(clauses))[:MOST_CLAUSES]
    return tuple(unique) if any(clause.rule != "not" for clause in unique) else ()


def loosen(clause: QueryClause) -> list[QueryClause]:
    """Return the clause with parts of words allowed, then each of its pieces alone; empty when it
    cannot be looser."""
    strict = clause.rule == "must"
    alone = [] if strict else [replace(one, rule="may") for one in clause.pieces]
    first, *middle = clause.atoms
    if clause.rule == "not" or first.how == "part":
        return []
    part = first.text if middle else clause.word
    if is_dense(part[0]) or len(part) < 2:
        return alone
    last = [Atom(text=atom.text, how="prefix") for atom in middle[-1:]]
    wide = replace(
        clause,
        atoms=(Atom(text=part, how="part"), *middle[:-1], *last),
        left=False,
        right=False,
        inside_weight=_INSIDE_WORD,
        stem="",
        pieces=(),
        near=(),
    )
    return [wide, *alone]


def _bare(raw: str) -> list[QueryClause]:
    folded = fold(_APOSTROPHE.sub("", raw))
    found = pieces(folded)
    if not found:
        return []
    if len(found) > 1:
        return [_sequence(folded, found, open_end=True)]
    text = found[0][0]
    if not is_dense(text[0]):
        if not raw.endswith("*"):
            return [_word(text)]
        prefix = Atom(text=text, how="prefix")
        return [QueryClause(atoms=(prefix,), word=text, right=False)]
    if len(text) <= _LONGEST_DENSE_UNIT:
        return [_run(text)]
    return [_run(pair) for pair in pairs(text)]


def _quoted(raw: str) -> list[QueryClause]:
    folded = fold(raw)
    found = pieces(folded)
    if not found:
        return []
    phrase = _sequence(folded, found, open_end=raw.rstrip().endswith("*"))
    return [replace(phrase, rule="must")]


def _word(text: str) -> QueryClause:
    stem = forms.stem(text)
    return QueryClause(atoms=(_word_atom(text, stem),), word=text, stem=stem)


def _word_atom(word: str, stem: str) -> Atom:
    return Atom(text=stem, how="forms") if stem else Atom(text=word, how="exact")


def _run(text: str) -> QueryClause:
    """Return the clause of a short run of a script without spaces: it may be part of a longer
    run."""
    units = pairs(text)
    return QueryClause(
        atoms=tuple(_dense_atoms(text)),
        word=text,
        left=False,
        right=False,
        pieces=tuple(map(_run, units)) if len(units) > 1 else (),
    )


def _dense_atoms(text: str) -> list[Atom]:
    if len(text) == 1:
        return [Atom(text=text, how="prefix")]
    return [Atom(text=pair, how="exact") for pair in pairs(text)]


def _sequence(folded: str, found: list[tuple[str, int]], *, open_end: bool) -> QueryClause:
    """Return a clause of pieces that must follow each other; an open end may be the beginning of a
    longer word."""
    atoms: list[Atom] = []
    pattern = ""
    end = found[0][1]
    for piece, start in found:
        pattern += (GAP if start > end else "") + re.escape(piece)
        end = start + len(piece)
        atoms += _dense_atoms(piece) if is_dense(piece[0]) else [_word_atom(piece, "")]
    first, last = found[0][0], found[-1][0]
    if open_end and not is_dense(last[0]):
        atoms[-1] = Atom(text=last, how="prefix")
    units = [_run(piece) if is_dense(piece[0]) else _word(piece) for piece, _ in found]
    return QueryClause(
        atoms=tuple(atoms[:_MOST_ATOMS]),
        word=folded[found[0][1] : end],
        pattern=pattern,
        left=not is_dense(first[0]),
        right=not open_end and not is_dense(last[0]),
        pieces=tuple(units[:_MOST_ATOMS]) if len(units) > 1 else (),
    )


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
    """A parsed question."""

    clauses: tuple[QueryClause, ...]
    asks: Asks = "anything"  # the kind of answer that is wanted
    period: Period | None = None  # the time that the question names


def parse_question(query: str, now: float) -> Question:
    """Parse a question; every string is a valid one."""
    clauses = parse(query)
    if not clauses:
        return Question(clauses=())
    names = _names(query)
    bare = any(clause.rule == "may" for clause in clauses)
    found = [clause for one in clauses for clause in _settle_quotes(one, names, bare)]
    telling = [
        one for one in found if one.rule != "may" or one.word in names or not is_stop_word(one.word)
    ]
    sought = any(clause.rule != "not" for clause in telling)
    low = query.lower()
    return Question(
        clauses=tuple(dict.fromkeys(telling if sought else found)),
        asks="time" if _WHEN.search(low) else "amount" if _HOW_MUCH.search(low) else "anything",
        period=periods.named_in(query, now),
    )


def soften(clauses: tuple[QueryClause, ...]) -> tuple[QueryClause, ...]:
    """Return the same clauses, all optional."""
    found: list[QueryClause] = []
    for clause in clauses:
        if clause.rule != "must":
            found.append(clause)
            continue
        telling = [piece for piece in clause.pieces if not is_stop_word(piece.word)]
        found += [replace(one, rule="may") for one in (clause, *telling)]
    return tuple(dict.fromkeys(found))


def is_spelt_wrong(clause: QueryClause) -> bool:
    """Whether an unmatched clause may be misspelled: its word is in no dictionary."""
    word = clause.word
    plain = len(clause.atoms) == 1 and clause.left and clause.right and clause.rule != "not"
    shortest = SHORTEST_NAME if clause.name else SHORTEST
    return plain and len(word) >= shortest and word.isalpha() and not is_listed(word)


def respell(clause: QueryClause, words: Sequence[str]) -> QueryClause:
    """Return the same clause for the words that were probably meant; the first word counts most.
    Dictionary words are not taken for names."""
    telling = [word for word in words if not is_stop_word(word)]
    meant = [word for word in telling if not (clause.name and is_listed(word))][:_MOST_GUESSES]
    if not meant:
        return clause
    first, *others = meant
    stem = "" if clause.name else forms.stem(first)
    near = tuple((_word_atom(word, ""), _OTHER_GUESS) for word in others)
    return replace(clause, word=first, atoms=(_word_atom(first, stem),), stem=stem, near=near)


def _settle_quotes(clause: QueryClause, names: frozenset[str], bare: bool) -> list[QueryClause]:
    """Make quoted words beside others optional; alone they are required. The parts of a hyphenated
    word also count alone."""
    if clause.rule == "must" and clause.pattern and bare:
        return [_add_near_words(one, names) for one in soften((clause,))]
    if clause.rule == "may" and "-" in clause.word and clause.pieces:
        parts = [piece for piece in clause.pieces if len(piece.word) > 2 and piece.word.isalpha()]
        return [clause, *(_add_near_words(part, names) for part in parts)]
    return [_add_near_words(clause, names)]


def _add_near_words(clause: QueryClause, names: frozenset[str]) -> QueryClause:
    """Return the clause with words that may replace it; a name has none."""
    if clause.rule == "not" or len(clause.atoms) != 1 or not clause.word.isalpha():
        return clause
    if clause.word in names:
        return replace(clause, name=True, atoms=(_word_atom(clause.word, ""),), stem="")
    if not clause.right or not clause.word.isascii():
        return clause
    known = related_words(clause.word)
    near = [(_near_atom(word), 1.0) for word in known.forms]
    near += [(_near_atom(word), weight) for word, weight in known.near]
    weight = _WEAK if is_weak_word(clause.word) else 1.0
    return replace(clause, near=tuple(near), weight=weight)


def _near_atom(word: str) -> Atom:
    """Return the atom of a near word, which must be certain: a short stem has forms that are other
    words."""
    stem = forms.stem(word)
    return _word_atom(word, stem if len(stem) > 3 else "")


def _names(query: str) -> frozenset[str]:
    """Return capitalised words that do not begin a sentence."""
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
