"""Parses a query into clauses. Every string is a valid query."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from hermes.codec.values import Value
from hermes.journal.index import forms
from hermes.journal.index.words import fold, is_dense, pairs, pieces

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


class Atom(Value):
    """Terms that are looked up together: all forms of a stem, one term, all with a prefix, or all
    that contain a part."""

    text: str
    how: How


class Near(Value):
    """A word that may replace another, and its weight."""

    atom: Atom
    weight: float


class QueryClause(Value):
    """One clause of the query. A message matches when it has all atoms and its folded text holds
    the word, or the pattern of a phrase. `left` and `right` require word boundaries; otherwise a
    match inside of a word counts `inside_weight`. With a stem, any form of the word matches. A
    message with only the pieces counts a little. Near words are looked up too; a name concerns
    its whole session. `weight` is relative to other clauses of the same rarity."""

    atoms: tuple[Atom, ...]
    word: str
    pattern: str = ""
    stem: str = ""
    left: bool = True
    right: bool = True
    inside_weight: float = 1.0
    rule: Rule = "may"
    pieces: tuple[QueryClause, ...] = ()
    near: tuple[Near, ...] = ()
    name: bool = False
    weight: float = 1.0


def parse(query: str) -> tuple[QueryClause, ...]:
    """Quoted words are a phrase; `word*` is a prefix; AND, OR and NOT work in capitals; all other
    characters only separate."""
    text = query[:LONGEST_QUERY].encode("utf-8", "replace").decode().translate(_QUOTES)
    clauses: list[QueryClause] = []
    pending: Rule = "may"
    for chunk in _CHUNK.finditer(text):
        bare = chunk["bare"]
        if bare in ("AND", "OR", "NOT"):
            pending = _after_operator(bare, clauses)
            continue
        found = _bare(bare) if bare is not None else _parse_quoted(chunk["quoted"])
        if pending != "may":
            found = [msgspec.structs.replace(clause, rule=pending) for clause in found]
        clauses += found
        pending = "may"
    unique = list(dict.fromkeys(clauses))[:MOST_CLAUSES]
    return tuple(unique) if any(clause.rule != "not" for clause in unique) else ()


def loosen(clause: QueryClause) -> list[QueryClause]:
    """The clause with parts of words allowed, then each of its pieces alone; empty when it cannot
    be looser."""
    strict = clause.rule == "must"
    alone = [] if strict else [msgspec.structs.replace(one, rule="may") for one in clause.pieces]
    first, *middle = clause.atoms
    if clause.rule == "not" or first.how == "part":
        return []
    part = first.text if middle else clause.word
    if is_dense(part[0]) or len(part) < 2:
        return alone
    last = [Atom(text=atom.text, how="prefix") for atom in middle[-1:]]
    wide = msgspec.structs.replace(
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


def _after_operator(operator: str, clauses: list[QueryClause]) -> Rule:
    """What the operator means for the next clause; AND also applies to the one before it."""
    if operator == "AND":
        if clauses and clauses[-1].rule == "may":
            clauses[-1] = msgspec.structs.replace(clauses[-1], rule="must")
        return "must"
    return "not" if operator == "NOT" else "may"


def _bare(raw: str) -> list[QueryClause]:
    folded = fold(_APOSTROPHE.sub("", raw))
    found = pieces(folded)
    if not found:
        return []
    starred = raw.endswith("*")
    if len(found) > 1:
        return [_sequence(folded, found, open_end=True)]
    text = found[0][0]
    if not is_dense(text[0]):
        return [_prefix(text) if starred else _word(text)]
    if len(text) <= _LONGEST_DENSE_UNIT:
        return [_run(text)]
    return [_run(pair) for pair in pairs(text)]


def _parse_quoted(raw: str) -> list[QueryClause]:
    folded = fold(raw)
    found = pieces(folded)
    if not found:
        return []
    starred = raw.rstrip().endswith("*")
    phrase = _sequence(folded, found, open_end=starred)
    return [msgspec.structs.replace(phrase, rule="must")]


def _word(text: str) -> QueryClause:
    stem = forms.stem(text)
    atom = Atom(text=stem, how="forms") if stem else Atom(text=text, how="exact")
    return QueryClause(atoms=(atom,), word=text, stem=stem)


def _prefix(text: str) -> QueryClause:
    return QueryClause(atoms=(Atom(text=text, how="prefix"),), word=text, right=False)


def _run(text: str) -> QueryClause:
    """A short run of a script without spaces: it may be part of a longer run."""
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
    """Pieces that must follow each other; an open end may be the beginning of a longer word."""
    atoms: list[Atom] = []
    pattern = ""
    end = found[0][1]
    for piece, start in found:
        pattern += (GAP if start > end else "") + re.escape(piece)
        end = start + len(piece)
        exact = Atom(text=piece, how="exact")
        atoms += _dense_atoms(piece) if is_dense(piece[0]) else [exact]
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
