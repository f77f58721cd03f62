"""How much a passage is like an injection: its ideas, which of them follow which, and its words."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files
from math import log

from hermes.policy.scan.finding import Sign
from hermes.policy.scan.sense import END, Row

# Signs of a row that are no ideas.
_EMPTY = frozenset(".,:/_|")
# Ideas that are further apart have nothing to do with each other.
_REACH, _FOLLOWERS = 14, 8
# A passage is one sentence, or more if they are short.
_SENTENCES, _SHORT, _LONG = 3, 48, 64
_FEWEST = 3
# Without some of the telling ideas no passage is an injection; a loud one counts twice.
_TELLING = frozenset("AiISPhOWXQfBzNkCYDEVjlotRxU12345678svdeKacgGιβθκνξζ")
_LOUD = frozenset("AiISPhOWXfBzNkCYDEjl4568")
LIKENESS = "resembles_injection"
# From here on it is found; of many passages one is like an injection by chance.
_STRONG = {"memory": 1.0, "skill": 0.8, "context": 1.0, "tool_description": 0.8}
_CHANCE, _USUAL = 1.1, 300
# So much less is a weak sign in a text that is brief; facts that are kept have many.
_NEARLY, _BRIEF = 1.0, 2000
# Words that tell a story, a rule and an order apart.
_MOOD = frozenset(
    """
    the a an in this that our we it its if when to please you do never always all my your i as for
    from by he she they their can may will was were is are has had have would could been be must
    should not and or but which who what how
    """.split()
)
_ENDINGS = ("ing", "ed", "es", "s", "e")
_STEM = 7
# A skill is made of orders: there they mean no more than elsewhere.
_KINDS = {"memory": "kept", "tool_description": "tool"}


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


def features(row: Row, first: int, last: int, kind: str) -> list[str]:
    """Every idea, every two of which one follows the other, and every word; ideas and
    words again for texts that are kept and for tools."""
    passage = row.ideas[first:last]
    found = [(at, idea) for at, idea in enumerate(passage) if idea not in _EMPTY]
    told = {idea for _, idea in found}
    said = row.words[first - 1 : last - 1]
    for at in _starts(passage):
        told.add("^" + passage[at + 1 : at + 2])
        told.update("^" + word for word in said[at + 1 : at + 2] if word in _MOOD)
    told.update("~" + word for word in _MOOD.intersection(said))
    for number, (at, idea) in enumerate(found):
        for later, other in found[number + 1 : number + 1 + _FOLLOWERS]:
            if later - at > _REACH:
                break
            told.add(idea + other)
    words = {f"={stem}" for stem in _stems(said)}
    if len(words) < _FEWEST:
        return []
    group = _KINDS.get(kind, "")
    again = (each for each in (*told, *words) if group and (len(each) == 1 or each[0] == "="))
    return [*told, *words, *(f"{group}:{each}" for each in again)]


def _starts(passage: str) -> Iterator[int]:
    """Where a sentence ends and another one begins; the first one begins after -1."""
    yield -1
    at = passage.find(END, 0, -1)
    while at >= 0:
        yield at
        at = passage.find(END, at + 1, -1)


def _stems(words: list[str]) -> Iterator[str]:
    """The beginnings of words; of scripts that do not set words apart, every two letters."""
    joined = ""
    for word in words:
        if word[0] > "\u0e00" and word[0].isalpha():
            joined += word.replace(" ", "")
        elif len(word) > 2 and word[0].isalpha():
            yield _stem(word)
    for at in range(len(joined) - 1):
        yield joined[at : at + 2]


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) > 3:
            return word[: -len(ending)][:_STEM]
    return word[:_STEM]


@cache
def _weights() -> dict[str, float]:
    text = files("hermes.policy.scan").joinpath("weights.txt").read_text(encoding="utf-8")
    lines = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return {feature: float(weight) for feature, weight in lines}


def likeness(row: Row, first: int, last: int, kind: str) -> float:
    """Above zero it is rather an injection than not."""
    weights = _weights()
    told = features(row, first, last, kind)
    return weights["bias"] + sum(weights.get(each, 0.0) for each in told)


def _loudness(passage: str) -> int:
    return len(_TELLING.intersection(passage)) + len(_LOUD.intersection(passage))


def resembling(row: Row, start: int, kind: str, length: int) -> Iterator[Sign]:
    """Passages of a row, which begins at `start` of the text, that are much like injections;
    `length` is that of the whole text."""
    strong = _STRONG[kind] + _CHANCE * log(max(length / _USUAL, 1.0))
    nearly = _NEARLY if length < _BRIEF and kind != "memory" else 0.0
    # What cannot become so likely is not looked at closely.
    needed = min(int(strong) + 1, 5)
    done = 0
    for first, last in passages(row.ideas):
        if first < done or _loudness(row.ideas[first:last]) < needed:
            continue
        like = likeness(row, first, last, kind)
        if like >= strong - nearly:
            done = last
            telling = next(at for at in range(first, last) if row.ideas[at] not in _EMPTY)
            begin, end = row.place(telling, last - 1)
            yield Sign(id=LIKENESS, start=start + begin, end=start + end, strong=like >= strong)
