"""How much a passage is like an injection: its ideas and words, what the rules say about it, and
where it stands."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from heapq import nlargest
from importlib.resources import files
from itertools import accumulate, pairwise

from hermes.codec.values import Value
from hermes.policy.scan.finding import Sign
from hermes.policy.scan.sense import END, Row
from hermes.policy.scan.setting import Setting
from hermes.policy.scan.stems import stems

_END = re.compile(re.escape(END))
# Signs of a row that are no ideas.
_EMPTY = frozenset(".,:/_|")
# Ideas that are further apart have nothing to do with each other.
_REACH, _FOLLOWERS = 14, 8
# A passage is one sentence, or more if they are short.
_SENTENCES, _SHORT, _LONG = 3, 48, 64
_FEWEST = 3
LIKENESS = "resembles_injection"
# From here on it is found; of many passages one is like an injection by chance.
_STRONG = {"memory": 0.6, "skill": 0.7, "context": 1.0, "tool_description": 0.2}
_CHANCE, _USUAL = 0.7, 600
# What lacks so much by its words does not become likely by its place.
_HOPELESS = 3.0
# So many passages of a long text are weighed, those with the most telling words.
_MOST_WEIGHED = 8
# Orders mean other things in what is kept, in tools and in skills than elsewhere.
_KINDS = {"memory": "kept", "tool_description": "tool", "skill": "skill"}


class Told(Value):
    """A sign of a rule, and whether its words are only spoken about."""

    sign: Sign
    mentioned: bool


class Likeness(Value):
    """Where a passage stands in the text, and how much more like an injection it is than a text
    of this kind and length may be; below zero it is not."""

    start: int
    end: int
    excess: float


def passages(ideas: str) -> Iterator[tuple[int, int]]:
    """Where the passages of a row begin and end."""
    ends = [match.start() for match in _END.finditer(ideas)] + [len(ideas)]
    for number, start in enumerate(ends[:-1]):
        end = ends[number + 1]
        for later in ends[number + 2 : number + 1 + _SENTENCES]:
            if later - start > _SHORT:
                break
            end = later
        yield start + 1, min(end, start + _LONG)


def features(row: Row, first: int, last: int, kind: str) -> set[str]:
    """Every idea, every two of which one follows the other, every stem, and every two and three
    stems in a row; ideas and stems again for the kind of text."""
    passage = row.ideas[first:last]
    found = [(at, idea) for at, idea in enumerate(passage) if idea not in _EMPTY]
    told = {"i:" + idea for _, idea in found}
    said = row.words[first - 1 : last - 1]
    words = stems(said)
    if len(set(words)) < _FEWEST:
        return set()
    told.update(["w:" + word for word in words])
    if group := _KINDS.get(kind):
        told.update([f"{group}.{each}" for each in told])
        told.add(group)
    for number, (at, idea) in enumerate(found):
        for later, other in found[number + 1 : number + 1 + _FOLLOWERS]:
            if later - at > _REACH:
                break
            told.add("p:" + idea + other)
    told.update(_beginnings(passage, said))
    told.update([f"b:{one} {two}" for one, two in pairwise(words)])
    told.update([f"k:{one} {two}" for one, two in zip(words, words[2:], strict=False)])
    told.update([f"c:{a} {b} {c}" for a, b, c in zip(words, words[1:], words[2:], strict=False)])
    return told


def _beginnings(passage: str, said: Sequence[str]) -> Iterator[str]:
    """The first idea and the first words of each sentence."""
    at = -1
    while True:
        yield "s:" + passage[at + 1 : at + 2]
        first = stems(said[at + 1 : at + 3])
        yield from ("s:=" + " ".join(first[:count]) for count in (1, 2) if len(first) >= count)
        at = passage.find(END, at + 1, -1)
        if at < 0:
            return


@cache
def _weights() -> dict[str, float]:
    text = files("hermes.policy.scan").joinpath("weights.txt").read_text(encoding="utf-8")
    found: dict[str, float] = {}
    for line in text.splitlines():
        feature, tab, weight = line.rpartition("\t")
        if tab:
            found[feature] = int(weight) / 100
    return found


class _Telling(dict[str, float]):
    """How much a word says by itself, as far as words have been met."""

    def __missing__(self, word: str) -> float:
        weights = _weights()
        says = max((weights.get("w:" + stem, 0.0) for stem in stems([word])), default=0.0)
        self[word] = max(says, 0.0)
        return self[word]


@cache
def _telling() -> _Telling:
    return _Telling()


def likeness(told: set[str]) -> float:
    """Above zero it is rather an injection than not."""
    weights = _weights()
    return weights["bias"] + sum([weights.get(each, 0.0) for each in told])


def _worth_weighing(rows: list[tuple[int, Row]]) -> list[tuple[int, Row, int, int]]:
    """All passages of a short text; of a long one those with the most telling words."""
    every = [(start, row, *span) for start, row in rows for span in passages(row.ideas)]
    if len(every) <= _MOST_WEIGHED:
        return every
    telling = _telling()
    if len(telling) > 20_000:
        telling.clear()
    sums = {
        start: list(accumulate(map(telling.__getitem__, row.words), initial=0.0))
        for start, row in rows
    }

    def says(passage: tuple[int, Row, int, int]) -> float:
        start, _, first, last = passage
        return sums[start][last - 1] - sums[start][first - 1]

    return nlargest(_MOST_WEIGHED, every, key=says)


def weighed(
    plain: str,
    rows: list[tuple[int, Row]],
    signs: Sequence[Told],
    kind: str,
    hopeless: float = -math.inf,
) -> Iterator[tuple[int, int, set[str]]]:
    """The passages of a text that are worth weighing: where they stand, and their features. Those
    that no rule speaks against are left out if their words alone are hopeless."""
    setting = Setting(plain)
    for start, row, first, last in _worth_weighing(rows):
        told = features(row, first, last, kind)
        if not told or (not signs and likeness(told) < hopeless):
            continue
        begin, end = (start + at for at in row.place(first, last - 1))
        told.update(setting.features(begin, end))
        told.update(
            f"r:{each.sign.id}{'+' * each.sign.strong}{'?' * each.mentioned}"
            for each in signs
            if each.sign.start < end and each.sign.end > begin
        )
        yield begin, end, told


def resembling(
    plain: str, rows: list[tuple[int, Row]], signs: Sequence[Told], kind: str
) -> Iterator[Likeness]:
    """How much each passage of a text is like an injection, in any order."""
    needed = _STRONG[kind] + _CHANCE * math.log(max(len(plain) / _USUAL, 1.0))
    for start, end, told in weighed(plain, rows, signs, kind, needed - _HOPELESS):
        yield Likeness(start=start, end=end, excess=likeness(told) - needed)
