"""A linear classifier that scores how much a passage resembles an injection."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from heapq import nlargest
from itertools import pairwise
from pathlib import Path

from hermes.codec.values import Value
from hermes.policy.patterns import regex
from hermes.policy.scan.concepts import END, ConceptRow
from hermes.policy.scan.normal import alphabet
from hermes.policy.scan.rules import RuleMatch
from hermes.policy.scan.tables import TABLES
from hermes.policy.scan.triage import stem_scores, stems

_QUOTES = '"“”«»„「」『』'
_TOPICS = TABLES.lists["topics"]
_SPACED, _JOINED = TABLES.lists["foreign_topics"], TABLES.lists["joined_topics"]
_FOREIGN = regex(rf"\b(?:{'|'.join(_SPACED)})|{'|'.join(_JOINED)}")
_FOREIGN_FIRST = frozenset(word[0] for word in (*_SPACED, *_JOINED))
_WORDS = bytes(byte if chr(byte).isalnum() and byte < 128 else 32 for byte in range(256))
_MOST_KNOWN = 20_000
# Topics further away say little about a passage.
_AROUND = 2000


class _Topics(dict[str, str]):
    """A cache of the topic that a word indicates; "" for most words."""

    def __missing__(self, word: str) -> str:
        if len(self) > _MOST_KNOWN:
            self.clear()
        self[word] = next((topic for topic in _TOPICS if word.startswith(topic)), "")
        return self[word]


_topics = _Topics()


def topics(plain: str) -> set[str]:
    """Return the topics that words of the text indicate."""
    spaced = plain.encode("latin-1", "replace").translate(_WORDS).decode("ascii")
    found = set(map(_topics.__getitem__, spaced.split())) - {""}
    # Most texts that are not ASCII contain none of these letters.
    if not _FOREIGN_FIRST.isdisjoint(alphabet(plain)):
        found.update(_FOREIGN.findall(plain))
    return found


def position_features(plain: str, start: int, end: int) -> dict[str, AbstractSet[str]]:
    """Return features of the position of a passage: in quotation marks, near topic words, alone."""
    passage = plain[start:end]
    quoted = set()
    if sum(map(passage.count, _QUOTES)) > 1:
        quoted.add("pair")
    if plain.count('"', plain.rfind("\n", 0, start) + 1, start) % 2:
        quoted.add("in")
    around = topics(plain[max(0, start - _AROUND) : start]) | topics(plain[end : end + _AROUND])
    if len(plain) - len(passage) < 30:
        around.add("alone")
    return {"q": quoted, "d": around}


_END = regex(re.escape(END))
# Characters of a row that are not concepts.
_EMPTY = frozenset(".,:/_|")
# Concepts further apart do not form a pair.
_REACH, _FOLLOWERS = 14, 8
# A passage is one sentence, or more if they are short.
_SENTENCES, _SHORT, _LONG = 3, 48, 64
_FEWEST = 3
BIAS = "bias"
CLASSIFIER_ID = "resembles_injection"
# The score from which a passage is suspicious, above the threshold of its kind.
CAUTION = 0.0
_THRESHOLDS = {"memory": 1.0, "skill": 1.0, "context": 1.0, "tool_description": 1.0}
# Of many passages one is like an injection by chance: a longer text needs more.
_CHANCE, _USUAL = 0.5, 600
# Rule matches may add this much to the score of a passage.
_SAID = 4.0
# Number of passages of a long text that are scored: those with the highest triage scores.
_MOST_WEIGHED = 8
# Words have separate weights in memories, tool descriptions and skills.
_KINDS = {"memory": "kept", "tool_description": "tool", "skill": "skill"}


Features = dict[str, AbstractSet[str]]


class CheckedMatch(Value):
    """A rule match, and whether it is only a quotation."""

    sign: RuleMatch
    mentioned: bool


class PassageScore(Value):
    """A passage and its score above the threshold for its kind of text and its length."""

    start: int
    end: int
    score: float


def passages(ideas: str) -> Iterator[tuple[int, int]]:
    """Yield the bounds of the passages of a row: one sentence, or several short ones."""
    ends = [match.start() for match in _END.finditer(ideas)] + [len(ideas)]
    for number, start in enumerate(ends[:-1]):
        end = ends[number + 1]
        for later in ends[number + 2 : number + 1 + _SENTENCES]:
            if later - start > _SHORT:
                break
            end = later
        if end - start > _FEWEST:
            yield start + 1, min(end, start + _LONG)


def features(row: ConceptRow, first: int, last: int, kind: str) -> Features:
    """Return the features of a passage: ideas, pairs of ideas and stems; ideas and stems again by
    kind of text."""
    passage = row.ideas[first:last]
    tokens = row.words[first - 1 : last - 1]
    words = stems(tokens)
    single = set(words)
    if len(single) < _FEWEST:
        return {}
    ideas = set(passage) - _EMPTY
    found: Features = {
        "i": ideas,
        "w": single,
        "p": set(_followers(passage)),
        "b": set(map(" ".join, pairwise(words))),
    }
    if group := _KINDS.get(kind):
        found |= {f"{group}.i": ideas, f"{group}.w": single, "kind": {group}}
    return found


def _followers(passage: str) -> Iterator[str]:
    """Yield pairs of concepts that are close together."""
    found = [(at, idea) for at, idea in enumerate(passage) if idea not in _EMPTY]
    for number, (at, idea) in enumerate(found):
        for later, other in found[number + 1 : number + 1 + _FOLLOWERS]:
            if later - at > _REACH:
                break
            yield idea + other


@cache
def _weights() -> dict[str, dict[str, int]]:
    """Return the weights in hundredths, by family of features."""
    text = Path(__file__).with_name("weights.txt").read_text(encoding="utf-8")
    found: dict[str, dict[str, int]] = {}
    for line in text.splitlines():
        name, tab, weight = line.rpartition("\t")
        if tab:
            family, _, key = name.partition(":")
            found.setdefault(family, {})[key] = int(weight)
    return found


@cache
def _best_position() -> float:
    """Return the most that the features of a position can add to a score."""
    weights = [*_weights().get("q", {}).values(), *_weights().get("d", {}).values()]
    return sum(weight for weight in weights if weight > 0) / 100


def score_features(features: Features) -> float:
    """Return the log odds that a passage is an injection."""
    weights = _weights()
    # Integers, so that the order of the keys does not matter.
    total = weights[BIAS][""]
    for family, keys in features.items():
        if known := weights.get(family):
            total += sum([known[key] for key in keys & known.keys()])
    return total / 100


def feature_names(features: Features) -> Iterator[str]:
    """Yield the feature names used in weights.txt."""
    for family, keys in features.items():
        for key in keys:
            yield f"{family}:{key}"


def _select_passages(rows: list[tuple[int, ConceptRow]]) -> list[tuple[int, ConceptRow, int, int]]:
    """Return all passages of a short text; of a long one those with the highest triage scores."""
    every = [(start, row, *span) for start, row in rows for span in passages(row.ideas)]
    if len(every) <= _MOST_WEIGHED:
        return every
    known = stem_scores()

    def triage_score(passage: tuple[int, ConceptRow, int, int]) -> int:
        _, row, first, last = passage
        return sum(map(known.__getitem__, set(row.words[first - 1 : last - 1])))

    return nlargest(_MOST_WEIGHED, every, key=triage_score)


def passage_features(
    plain: str,
    rows: list[tuple[int, ConceptRow]],
    signs: Sequence[CheckedMatch],
    kind: str,
    hopeless: float = -math.inf,
) -> Iterator[tuple[int, int, Features]]:
    """Yield bounds and features of the passages of a text, without those that score below
    `hopeless`."""
    for start, row, first, last in _select_passages(rows):
        found = features(row, first, last, kind)
        if not found or score_features(found) < hopeless:
            continue
        begin, end = (start + at for at in row.place(first, last - 1))
        found |= position_features(plain, begin, end)
        found["r"] = {
            f"{each.sign.id}{'+' * each.sign.strong}{'?' * each.mentioned}"
            for each in signs
            if each.sign.start < end and each.sign.end > begin
        }
        yield begin, end, found


def score_passages(
    plain: str, rows: list[tuple[int, ConceptRow]], signs: Sequence[CheckedMatch], kind: str
) -> Iterator[PassageScore]:
    """Score the passages of a text that can reach the threshold, in any order."""
    needed = _THRESHOLDS[kind] + _CHANCE * math.log(max(len(plain) / _USUAL, 1.0))
    # A passage that its position and rule matches cannot lift over the threshold is skipped.
    lacking = _best_position() + _SAID * bool(signs)
    for start, end, found in passage_features(plain, rows, signs, kind, needed - lacking):
        yield PassageScore(start=start, end=end, score=score_features(found) - needed)
