"""How much a passage is like an injection, by the ideas in it and which of them follow which."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from hermes.policy.scan.finding import Sign
from hermes.policy.scan.sense import END, Row

# Signs of a row that are no ideas.
_EMPTY = frozenset(".,:/_|")
# Ideas that are further apart have nothing to do with each other.
_REACH, _FOLLOWERS = 14, 8
# A passage is one sentence, or more if they are short.
_SENTENCES, _SHORT, _LONG = 3, 48, 64
_FEWEST = 2
# Without one of these ideas no passage is an injection.
_TELLING = frozenset("AiISPhOWXQfBzNkCYDEVjlotRxU")
LIKENESS = "resembles_injection"
_OWN = ("skill", "memory")
STRONG = 2.0
_KINDS = {"memory": "kept", "skill": "kept", "tool_description": "tool"}


def passages(ideas: str) -> Iterator[tuple[int, int]]:
    """Where the passages of a row begin and end."""
    ends = [at for at, idea in enumerate(ideas) if idea == END] + [len(ideas)]
    for number, start in enumerate(ends[:-1]):
        end = ends[number + 1]
        for later in ends[number + 2 : number + 1 + _SENTENCES]:
            if later - start > _SHORT:
                break
            end = later
        yield start + 1, min(end, start + _LONG)


def features(passage: str, kind: str) -> list[str]:
    """Every idea, and every two of which one follows the other; again for texts that are kept."""
    found = [(at, idea) for at, idea in enumerate(passage) if idea not in _EMPTY]
    if len(found) < _FEWEST:
        return []
    told = {idea for _, idea in found}
    for number, (at, idea) in enumerate(found):
        for later, other in found[number + 1 : number + 1 + _FOLLOWERS]:
            if later - at > _REACH:
                break
            told.add(idea + other)
    group = _KINDS.get(kind, "")
    return [*told, *(f"{group}:{each}" for each in told if group and len(each) == 1)]


@cache
def _weights() -> dict[str, float]:
    text = files("hermes.policy.scan").joinpath("weights.txt").read_text(encoding="utf-8")
    lines = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return {feature: float(weight) for feature, weight in lines}


def likeness(passage: str, kind: str) -> float:
    """Above zero it is rather an injection than not."""
    weights = _weights()
    return weights["bias"] + sum(weights.get(each, 0.0) for each in features(passage, kind))


def resembling(row: Row, start: int, kind: str) -> Iterator[Sign]:
    """Passages of a row, which begins at `start` of the text, that are much like injections. A
    skill is made of orders and a memory of wishes: that they are like one says nothing."""
    if kind in _OWN:
        return
    done = 0
    for first, last in passages(row.ideas):
        passage = row.ideas[first:last]
        if first < done or _TELLING.isdisjoint(passage):
            continue
        if likeness(passage, kind) >= STRONG:
            done = last
            telling = next(at for at in range(first, last) if row.ideas[at] not in _EMPTY)
            begin, end = row.place(telling, last - 1)
            yield Sign(id=LIKENESS, start=start + begin, end=start + end, strong=True)
