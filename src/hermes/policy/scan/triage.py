"""Selects the parts of a long text that are read closely, by the frequency of their stems."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from heapq import nlargest
from pathlib import Path

from hermes.policy.patterns import regex

_ENDINGS = ("ing", "ed", "es", "s", "e")
_STEM, _FOREIGN_STEM = 7, 5
_SENTENCE_ENDS = ".!?;\n。！？।؟"


def stems(words: Sequence[str]) -> list[str]:
    """Return the stem of each word, `|` for the end of a sentence; for scripts without spaces,
    pairs of adjacent letters at the end."""
    found: list[str] = []
    joined = ""
    for word in words:
        if word[0] > "\u0e00" and word[0].isalpha():
            joined += word.replace(" ", "")
        elif stem := _stem(word):
            found.append(stem)
    found += [joined[at : at + 2] for at in range(len(joined) - 1)]
    return found


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    if not word[0].isalpha():
        if word[0] == "/":
            return "/"
        if word[0] in _SENTENCE_ENDS:
            return "|"
        if "://" in word or word == "@":
            return "@"
        return word if word in (",", ":") else ""
    if not word.isascii():
        return word[:_FOREIGN_STEM]
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) > 3:
            return word[: -len(ending)][:_STEM]
    return word[:_STEM]


Spans = list[tuple[int, int]]
# Blank lines separate blocks.
_APART = "\n\n\n\n"
_UNBROKEN = regex(r"[^\n]+(?:\n{1,3}[^\n]+)*")
# Markers of conversation turns and tool calls.
_TURNS = (b"<|", b"[inst]", b"<system", b"[system", b"\nsystem:", b"\nassistant:", b"tool_call")
# A shorter text is read completely.
_SHORT = 3000
# Size of a part, and the number of parts that are read with their neighbours.
_PART, _MOST = 250, 6
# Lower bound for one word: ordinary words count little against a part.
_LEAST = -10
_LONGEST_WORD = 40
_SOME = 10
_MOST_KNOWN = 20_000
_WORD = regex(r"[^\W\d_]+")
_SPACES = bytes(byte if chr(byte).isalpha() and byte < 128 else 32 for byte in range(256))


class StemScores(dict[str, int]):
    """A cache of the log ratio of words in injections and elsewhere in tenths, computed from
    `stems`. Integers, so that the order of summing does not matter."""

    def __init__(self, known: dict[str, int]) -> None:
        super().__init__()
        self.stems = known

    def __missing__(self, word: str) -> int:
        if len(self) > _MOST_KNOWN:
            self.clear()
        self[word] = max(_LEAST, sum(self.stems.get(stem, 0) for stem in stems([word])))
        return self[word]


@cache
def stem_scores() -> StemScores:
    text = Path(__file__).with_name("triage.txt").read_text(encoding="utf-8")
    pairs = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return StemScores({stem: int(score) for stem, score in pairs})


def select_parts(plain: str) -> Spans:
    """Return the parts of a folded text to read closely, in order."""
    spans = [(0, len(plain))]
    if _APART in plain:
        spans = [match.span() for match in _UNBROKEN.finditer(plain)]
    if sum(end - start for start, end in spans) <= _SHORT:
        return spans
    every = [piece for span in spans for piece in split_pieces(*span)]
    data = plain.encode("latin-1", "replace")
    spaced = data.translate(_SPACES).decode("latin-1")
    score = stem_scores().__getitem__
    plainly = plain.isascii()
    scores = [
        sum(map(score, spaced[start:end].split()))
        if plainly or plain[start:end].isascii()
        else sum(map(score, _WORD.findall(plain, start, end)))
        for start, end in every
    ]
    best = nlargest(_MOST, range(len(every)), key=scores.__getitem__)
    chosen = {
        near
        for at in (*best, *_find_turns(data, every))
        for near in (at - 1, at, at + 1)
        if 0 <= near < len(every)
    }
    return [
        (_word_start(plain, start), end)
        for start, end in _join([every[at] for at in sorted(chosen)])
    ]


def _word_start(plain: str, start: int) -> int:
    """Return the start of the word that a piece begins in."""
    found = max(
        plain.rfind(" ", start - _LONGEST_WORD, start),
        plain.rfind("\n", start - _LONGEST_WORD, start),
    )
    return found + 1 if start > _LONGEST_WORD and found >= 0 else start


def is_uninteresting(plain: str) -> bool:
    """Whether no word of the text is typical of injections."""
    known = stem_scores()
    return plain.isascii() and all(known[word] < _SOME for word in _WORD.findall(plain))


def _find_turns(data: bytes, every: Spans) -> Iterator[int]:
    """Yield the pieces that contain a marker of a conversation turn."""
    for mark in _TURNS:
        at = data.find(mark)
        if at >= 0:
            yield bisect_right(every, (at, len(data))) - 1


def split_pieces(start: int, last: int) -> Iterator[tuple[int, int]]:
    """Split a part into pieces of one size; the pieces beside a chosen one are read, too."""
    for first in range(start, last, _PART):
        yield first, min(first + _PART, last)


def _join(spans: Spans) -> Iterator[tuple[int, int]]:
    start, last = spans[0]
    for first, end in spans[1:]:
        if first != last:
            yield start, last
            start = first
        last = end
    yield start, last
