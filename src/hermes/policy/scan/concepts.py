"""Reads a text as a row of concepts (lexicon.txt) and matches concept rules (concepts.toml)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from itertools import islice

from hermes.policy.patterns import regex
from hermes.policy.scan.rules import RuleMatch
from hermes.policy.scan.tables import (
    OTHER,
    RANK,
    TABLES,
    ConceptRule,
    LexiconEntry,
    Scope,
    compiled,
)

END, FILLER, DENIAL = "|", "_", "n"
_MOST = 40
_MOST_KNOWN = 20_000
# Block size in characters: positions inside a block are found fast.
_BLOCK = 4000
_EXPRESSIONS, _LEXICON = TABLES.expressions, TABLES.lexicon
# Scripts that need another tokenizer.
_UNUSUAL = regex("[\u0900-\u0e7f\u3001-\u9fff\uac00-\ud7af]")
_SIGNS = {":": ":", ",": ",", "\n": "/", "://": "d", "@": "d"}
_ENDS = frozenset(".!?;\n。！？।؟")
_CALLED = regex(_EXPRESSIONS["called"])
_ASKED = regex(r"(n[^|,:]{0,8})N")
_NOTHING = LexiconEntry()
_STEM_LENGTHS = sorted({len(stem) for stem in _LEXICON.stems}, reverse=True)
_STEM_HEADS = {stem[:3] for stem in _LEXICON.stems}


def _letters(word: str) -> tuple[str, str, str]:
    return word[0], word[-1], "".join(sorted(word))


_MISSPELT = {_letters(word): word for word in TABLES.lists["misspelt"]}


def _look_up(word: str) -> LexiconEntry:
    """Return the entry of a word in any of its forms."""
    found = _LEXICON.words.get(word, _NOTHING)
    if found.idea != OTHER:
        return found
    if word[:3] in _STEM_HEADS:
        for length in _STEM_LENGTHS:
            if stem := _LEXICON.stems.get(word[:length]):
                return LexiconEntry(
                    idea=stem.idea,
                    phrases={**stem.phrases, **found.phrases},
                    loose=(*found.loose, *stem.loose),
                )
    if found.phrases or found.loose:
        return found
    if len(word) > 5 and (meant := _MISSPELT.get(_letters(word))):
        return _LEXICON.words[meant]
    before, apostrophe, after = word.partition("'")
    if apostrophe and before:
        return _look_up(before if after in ("s", "") else after)
    return _NOTHING


def _entry(token: str) -> LexiconEntry:
    first = token[0]
    if token in _SIGNS:
        return LexiconEntry(idea=_SIGNS[token])
    if first == "-":
        return _LEXICON.words.get(token, _NOTHING)
    if first == "/" or (first == "." and len(token) > 1):
        return LexiconEntry(idea="k")
    if first in _ENDS:
        return LexiconEntry(idea=END)
    if token.count(".") == 3:
        return LexiconEntry(idea="d")
    if joined := _LEXICON.joined.get(token):
        return LexiconEntry(idea=joined)
    return _look_up(token.replace("’", "'"))


class _Concepts(dict[str, str]):
    """A cache of concepts by word; `opening` are words that begin phrases."""

    def __init__(self) -> None:
        super().__init__()
        self.opening: dict[str, LexiconEntry] = {}

    def __missing__(self, word: str) -> str:
        entry = _entry(word)
        if entry.phrases or entry.loose:
            self.opening[word] = entry
        self[word] = entry.idea
        return entry.idea


_concepts = _Concepts()


class ConceptRow:
    """The concepts of a text as one character per word, with `|` at the end of each sentence.
    `words` are the tokens: concept n + 1 belongs to word n."""

    def __init__(self, plain: str) -> None:
        self._plain = plain
        name = "plain_words"
        if not plain.isascii():
            name = "all_words" if _UNUSUAL.search(plain) else "letters"
        self._expression = compiled(_EXPRESSIONS[name])
        self.words: list[str] = self._expression.findall(plain)
        self.ideas = _mark_addressees(END + "".join(_ideas(self.words)))

    def place(self, first: int, last: int) -> tuple[int, int]:
        """Return the position of the concepts from `first` to `last` in the text."""
        spans = self._spans[max(first - 1, 0) : last]
        return (spans[0][0], spans[-1][1]) if spans else (0, 0)

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        return [match.span() for match in self._expression.finditer(self._plain)]


def _ideas(words: list[str]) -> list[str]:
    if len(_concepts) > _MOST_KNOWN:
        _concepts.clear()
        _concepts.opening.clear()
    ideas = [_concepts[word] for word in words]
    opening = _concepts.opening
    done = 0
    # Many words can begin a phrase, but few do.
    for at, (word, second) in enumerate(zip(words, [*words[1:], ""], strict=False)):
        if word not in opening or at < done:
            continue
        entry = opening[word]
        if phrases := entry.phrases.get(second) or entry.loose:
            done = _apply_phrase(phrases, words, ideas, at)
    return ideas


def _apply_phrase(
    phrases: tuple[tuple[str, ...], ...], words: list[str], ideas: list[str], at: int
) -> int:
    """Replace the concepts of a phrase; return the index after it."""
    for idea, *rest in phrases:
        end = at + 1 + len(rest)
        if end <= len(words) and all(map(_is_same, rest, words[at + 1 : end])):
            ideas[at:end] = idea.ljust(end - at, FILLER)
            return end
    return at + 1


def _is_same(wanted: str, word: str) -> bool:
    return word.startswith(wanted[:-1]) if wanted.endswith("*") else word == wanted


def _mark_addressees(ideas: str) -> str:
    """Mark addressees at the start of a sentence; drop "without asking" after a negation."""
    asked = _ASKED.sub(r"\1.", ideas) if "N" in ideas else ideas
    return _CALLED.sub(
        lambda found: found[1] + ("T" if found[2][0] == "t" else "A") + found[2][1:], asked
    )


def read_concepts(
    plain: str, spans: Iterable[tuple[int, int]] | None = None
) -> Iterator[tuple[int, ConceptRow]]:
    """Read a folded text, or parts of it, into rows with their offsets."""
    for first, last in spans if spans is not None else ((0, len(plain)),):
        for start, block in _blocks(plain[first:last]):
            yield first + start, ConceptRow(block)


@cache
def _shapes(
    scope: Scope, kind: str
) -> tuple[tuple[ConceptRule, re.Pattern[str], frozenset[str]], ...]:
    return tuple(
        (rule, compiled(expression), frozenset(needs))
        for rule in TABLES.concepts
        if RANK[rule.scope] <= RANK[scope] and rule.fits in ("", kind)
        for expression, needs in rule.shapes
    )


def match_concepts(
    row: ConceptRow, start: int, scope: Scope, kind: str = ""
) -> Iterator[RuleMatch]:
    """Yield matches of the concept rules in a row that begins at `start` of the text."""
    ideas = frozenset(row.ideas)
    for rule, expression, needs in _shapes(scope, kind):
        if not needs <= ideas:
            continue
        for match in islice(expression.finditer(row.ideas), _MOST):
            if rule.denied or not _is_denied(row.ideas, match.start()):
                first, last = row.place(match.start(), match.end() - 1)
                strong = rule.weight == "strong"
                yield RuleMatch(id=rule.id, start=start + first, end=start + last, strong=strong)


def _blocks(plain: str) -> Iterator[tuple[int, str]]:
    """Split a text at paragraphs or lines, with offsets."""
    start = 0
    while start < len(plain):
        end = len(plain)
        if end - start > _BLOCK:
            for sign in ("\n\n", "\n", ". ", " "):
                found = plain.rfind(sign, start + _BLOCK // 2, start + _BLOCK)
                if found > 0:
                    end = found + len(sign)
                    break
            else:
                end = start + _BLOCK
        yield start, plain[start:end]
        start = end


def _is_denied(ideas: str, at: int) -> bool:
    before = ideas[max(0, at - 3) : at].rpartition(END)[2].replace(FILLER, "")[-2:]
    return DENIAL in before or ideas[at + 1 : at + 2] == DENIAL
