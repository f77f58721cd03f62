"""Which parts of a text are worth a closer look, by how often their words stand in injections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from heapq import nlargest
from importlib.resources import files

from hermes.policy.scan.stems import stems

# A shorter text is read as a whole.
_SHORT = 3000
# The parts of a longer one, and how many of them are looked at together with their neighbours.
_PART, _MOST = 250, 6
# Words that are usual elsewhere speak against a part, but each of them only a little.
_LEAST = -1.0
_SOME = 1.0
_MOST_KNOWN = 20_000
_WORD = re.compile(r"[^\W_]+")
_SPACES = bytes(byte if chr(byte).isalnum() and byte < 128 else 32 for byte in range(256))


class Interest(dict[str, float]):
    """How much a word stands rather in injections than elsewhere, as far as words have been met;
    `stems` says it of their stems."""

    def __init__(self, known: dict[str, float]) -> None:
        super().__init__()
        self.stems = known

    def __missing__(self, word: str) -> float:
        if len(self) > _MOST_KNOWN:
            self.clear()
        told = max(_LEAST, sum(self.stems.get(stem, 0.0) for stem in stems([word])))
        self[word] = told
        return told


@cache
def interest() -> Interest:
    text = files("hermes.policy.scan").joinpath("interest.txt").read_text(encoding="utf-8")
    pairs = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return Interest({stem: int(told) / 10 for stem, told in pairs})


def parts(plain: str) -> list[tuple[int, int]]:
    """Where the parts of a folded text that are worth reading begin and end, in order."""
    if len(plain) <= _SHORT:
        return [(0, len(plain))]
    every = list(pieces(plain))
    spaced = plain.encode("latin-1", "replace").translate(_SPACES).decode("latin-1")
    known = interest()
    told = [
        sum(map(known.__getitem__, _words(plain[start:end], spaced[start:end])))
        for start, end in every
    ]
    chosen = {
        near
        for at in nlargest(_MOST, range(len(every)), key=told.__getitem__)
        for near in (at - 1, at, at + 1)
        if 0 <= near < len(every)
    }
    return list(_joined([every[at] for at in sorted(chosen)]))


def is_dull(plain: str) -> bool:
    """No word of it stands rather in injections than elsewhere."""
    known = interest()
    return plain.isascii() and all(known[word] < _SOME for word in _WORD.findall(plain))


def _words(piece: str, spaced: str) -> list[str]:
    """Whatever script they are in; `spaced` is the piece with spaces for all but plain letters."""
    return spaced.split() if piece.isascii() else _WORD.findall(piece)


def pieces(plain: str) -> Iterator[tuple[int, int]]:
    """The text cut at lines, sentences or words."""
    start = 0
    while len(plain) - start > _PART:
        middle, end = start + _PART // 2, start + _PART
        for sign in ("\n", ". ", " "):
            found = plain.rfind(sign, middle, end)
            if found > 0:
                end = found + len(sign)
                break
        yield start, end
        start = end
    yield start, len(plain)


def _joined(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    start, last = spans[0]
    for first, end in spans[1:]:
        if first != last:
            yield start, last
            start = first
        last = end
    yield start, last
