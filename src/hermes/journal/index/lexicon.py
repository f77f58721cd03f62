"""Word knowledge beyond spelling: forms, near words, hyponyms and stop words.

The list is English, plus the stop words of some other languages, and covers everyday topics. A word
that is not in it stands only for itself.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

_FILE = Path(__file__).with_name("lexicon.txt")
_NEAR = 0.6
_MEMBER = 0.5
_BACKWARDS = 0.35
_ENDINGS = (("ies", "y"), ("ing", "e"), ("ing", ""), ("ed", "e"), ("ed", ""), ("es", ""), ("s", ""))


class Related(NamedTuple):
    """`forms` count like the word itself; each of `near` counts for its part."""

    forms: tuple[str, ...] = ()
    near: tuple[tuple[str, float], ...] = ()


class _Lexicon(NamedTuple):
    stop: frozenset[str]
    weak: frozenset[str]
    forms: dict[str, list[str]]
    near: dict[str, list[str]]
    kinds: dict[str, list[str]]
    backwards: dict[str, list[str]]


def is_stop_word(word: str) -> bool:
    """Whether a folded word carries no meaning."""
    return word in _lexicon().stop


def is_weak_word(word: str) -> bool:
    """Whether a folded word is typical of questions rather than answers."""
    return word in _lexicon().weak


def is_listed(word: str) -> bool:
    """Whether a folded word, or its base form, is in the list."""
    known = _lexicon()
    tables = (known.forms, known.near, known.kinds, known.backwards)
    return word in known.stop or word in known.weak or any(_entry(some, word) for some in tables)


def related_words(word: str) -> Related:
    """Other words for a folded word."""
    known = _lexicon()
    forms = [form for form in _entry(known.forms, word) if form != word]
    near: dict[str, float] = {}
    for one in (word, *forms):
        for other in _entry(known.near, one):
            near.setdefault(other, _NEAR)
        for member in _entry(known.kinds, one):
            near.setdefault(member, _MEMBER)
    for one in (word, *forms):
        for head in _entry(known.backwards, one):
            near.setdefault(head, _BACKWARDS)
    for one in (word, *forms):
        near.pop(one, None)
    return Related(tuple(forms), tuple(near.items()))


def _entry(table: dict[str, list[str]], word: str) -> list[str]:
    """The entry of the word or of its base form."""
    if word in table:
        return table[word]
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and (base := word.removesuffix(ending) + instead) in table:
            return table[base]
    return []


@cache
def _lexicon() -> _Lexicon:
    sets: dict[str, set[str]] = {"stop": set(), "weak": set()}
    tables: dict[str, dict[str, list[str]]] = {name: {} for name in ("forms", "near", "kinds")}
    forms: defaultdict[str, list[str]] = defaultdict(list)
    part = ""
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if not line or line[0] == "#":
            continue
        if line[0] == "[":
            part = line[1:-1]
            continue
        head, *rest = words = line.replace(":", "").split()
        if part in sets:
            sets[part].update(words)
        elif part == "forms":
            for word in words:
                forms[word] += [other for other in words if other not in (word, *forms[word])]
        else:
            # Two-word entries stay apart, and of some only one word is significant.
            telling = [word for word in rest if word not in sets["stop"]]
            tables[part].setdefault(head, []).extend(telling)
    stop, weak = frozenset(sets["stop"]), frozenset(sets["weak"])
    near, kinds = tables["near"], tables["kinds"]
    return _Lexicon(stop, weak, dict(forms), near, kinds, _invert(near, kinds))


def _invert(*some: dict[str, list[str]]) -> dict[str, list[str]]:
    """For each word, the entries that name it."""
    heads: defaultdict[str, list[str]] = defaultdict(list)
    for table in some:
        for head, words in table.items():
            for word in words:
                heads[word].append(head)
    return dict(heads)
