"""Matches a clause by keywords in any order, for kinds that change nothing.

Every word must be accounted for: as a topic, as the value of a slot, or as a filler. With one more
unknown word, the clause means something that is not supported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path

from hermes.codec.json import decode
from hermes.codec.values import Value, replace
from hermes.providers.offline.language import TextToken, may_match
from hermes.providers.offline.matching import SKIP_LOSS, SLIP_LOSS, WORD_GAIN, RequestMatch
from hermes.providers.offline.phrases import EVERYDAY_PROGRAMS, MAX_NEAR, PROGRAMS, distance
from hermes.providers.offline.slots import (
    PatternElement,
    RequestClause,
    SlotReading,
    looks_like_file,
    parse_pattern,
)

SHORTEST_MISSPELT = 5

FOLDER = Path(__file__).parent / "gists"


class KeywordData(Value):
    """A file of `gists/`. `topics` are groups of phrases with one meaning, in any inflection
    ("=installed" is exact); `soft` words carry no meaning. `readings` are patterns by kind whose
    elements may be in any order; a bare name follows one of `before_names`, unless it may be
    anywhere (`{folder*}`). A step among others starts with a word of `asking`. `definitions` start
    a question about a meaning; so do the phrases of `meanings` if a single word follows."""

    endings: dict[str, str]
    soft: tuple[str, ...]
    asking: tuple[str, ...]
    definitions: tuple[str, ...]
    meanings: tuple[str, ...]
    before_names: tuple[str, ...]
    topics: dict[str, tuple[str, ...]]
    readings: dict[str, tuple[str, ...]]


class Keywords:
    """The data with its indexes."""

    def __init__(self, data: KeywordData) -> None:
        self.data = data
        self.soft = frozenset(data.soft)
        self.asking = frozenset(data.asking)
        self.before_names = frozenset(data.before_names)
        self.readings = tuple(
            (kind, text) for kind, texts in data.readings.items() for text in texts
        )
        self._endings = tuple(data.endings.items())
        self._last_letters = frozenset(ending[-1] for ending in data.endings)

    def stem(self, word: str) -> str:
        """The word without its ending; a doubled last letter is reduced: "running" is "run"."""
        if word[-1:] in self._last_letters:
            for ending, instead in self._endings:
                if word.endswith(ending) and len(word) - len(ending) > 2:
                    word = word[: -len(ending)] + instead
                    break
        return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word

    @cached_property
    def phrases(self) -> dict[str, list[tuple[tuple[str, ...], str]]]:
        """The phrases of topics as stems, by their first stem."""
        found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        for name, phrases in self.data.topics.items():
            for phrase in phrases:
                stems = tuple(w if w[0] == "=" else self.stem(w) for w in phrase.split())
                found.setdefault(stems[0], []).append((stems, f"<{name}>"))
        return found

    @cached_property
    def plain(self) -> frozenset[str]:
        """The words that readings contain literally."""
        elements = {part.rstrip("?") for _, text in self.readings for part in _elements(text)}
        plain = [part for part in elements if part[0] not in "<{"]
        return frozenset(word for part in plain for word in part.split("|"))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.stem(word) for group in self.vocabulary.values() for word in group)

    @cached_property
    def vocabulary(self) -> dict[str, list[str]]:
        """Every word by its first letter, for spelling correction."""
        phrases = [phrase for group in self.data.topics.values() for phrase in group]
        words = " ".join(phrases).replace("=", "").split()
        found: dict[str, list[str]] = {}
        for word in sorted({*words, *self.soft, *self.plain}):
            found.setdefault(word[0], []).append(word)
        return found

    def knows(self, text: str) -> bool:
        """True if all words have a meaning here, so that they are not a name. Capitals make a name:
        "TODO"."""
        if any(word[1:] != word[1:].casefold() for word in text.split()):
            return False
        words = text.casefold().split()
        return all(word in self.soft or self.stem(word) in self._known for word in words)

    def is_keyword(self, word: str) -> bool:
        """True if the word starts a phrase of a topic or occurs in a reading."""
        return self.stem(word) in self.phrases or f"={word}" in self.phrases or word in self.plain


@lru_cache(maxsize=8)
def load_keywords(code: str) -> Keywords | None:
    """None for a language without such a file."""
    file = FOLDER / f"{code}.json"
    return Keywords(decode(KeywordData, file.read_bytes())) if file.is_file() else None


@lru_cache(maxsize=256)
def near_keywords(gists: Keywords, word: str) -> tuple[str, ...]:
    """The words that this may be a single typo of. In a short word another letter usually makes
    another word: "life" is not "lie", "story" not "store"."""
    if len(word) < SHORTEST_MISSPELT or not word.isalpha():
        return ()
    return tuple(
        other
        for other in gists.vocabulary.get(word[0], ())
        if abs(len(other) - len(word)) <= 1
        and (len(other) != len(word) or len(word) > 6 or sorted(other) == sorted(word))
        and distance(word, other, 1) == 1
    )[:MAX_NEAR]


def _elements(text: str) -> list[str]:
    return text.partition(" -> ")[0].split()


MAX_TOKENS = 24
# Names, numbers and misspelt words; a text with more of them is about something else.
MAX_UNKNOWN = 4
NAME_GAIN = 1.0
PATH_GAIN = 1.5
# The number of stems of a word that are as written.
AS_WRITTEN = 2

_VARIABLE = re.compile(r"\$\w+|[A-Z][A-Z0-9_]+")

# Where a topic ends, its name, and the number of misspelt words.
Span = tuple[int, str, int]


def best_keyword_match(
    clause: RequestClause, gists: Keywords, *, whole: bool
) -> RequestMatch | None:
    """The reading that covers the clause with the most keywords. A part of a request must start
    like a request, so that the end of a text is not taken for one."""
    unknown = [token for token in clause.tokens if _is_unknown(gists, token)]
    if not 0 < len(clause.tokens) <= MAX_TOKENS or len(unknown) > MAX_UNKNOWN:
        return None
    gist = KeywordClause(clause, gists)
    if not gist.makes_sense() or not (whole or gist.asks()):
        return None
    best: RequestMatch | None = None
    for name, text in gists.readings:
        if may_match(text, gist.present):
            found = gist.read(name, text)
            if found is not None and (best is None or found.score > best.score):
                best = found
    return best


class KeywordClause:
    """One clause with the topics of its words."""

    def __init__(self, clause: RequestClause, gists: Keywords) -> None:
        self.clause = clause
        self.tokens = [_with_corrections(gists, token) for token in clause.tokens]
        self._gists = gists
        self._stems = [_stems(gists, token) for token in self.tokens]
        self._spans = [self._spans_at(at) for at in range(len(self.tokens))]
        self.present = {topic for spans in self._spans for _, topic, _ in spans}
        self.present |= {word for token in self.tokens for word in (token.word, *token.near)}

    def makes_sense(self) -> bool:
        """False for a question about the meaning of a word."""
        words = [token.word for token in self.tokens if token.kind != "mark"]
        text = " ".join(words)
        if any(text.startswith(f"{phrase} ") for phrase in self._gists.data.definitions):
            return False
        return " ".join(words[:-1]) not in self._gists.data.meanings

    def asks(self) -> bool:
        return self.tokens[0].word in self._gists.asking

    def read(self, name: str, text: str) -> RequestMatch | None:
        pattern = parse_pattern(text)
        cover = _Coverage(pattern.elements)
        at = 0
        while at < len(self.tokens):
            after = self._step(cover, at)
            if after is None:
                return None
            at = after
        kind = self.clause.language.kinds.get(name)
        if kind is None or not cover.complete():
            return None
        for key, value in pattern.sets:
            cover.slots[key] = value
        return RequestMatch(
            kind=kind, slots=cover.slots, references={}, score=cover.score, slips=cover.slips
        )

    def _step(self, cover: _Coverage, at: int) -> int | None:
        """The position after this token, or None if the reading does not cover it."""
        taken = [span for span in self._spans[at] if cover.accepts(span[1])]
        if taken:
            # A phrase may have several meanings: prefer one that is still missing.
            end, topic, slips = min(
                taken, key=lambda span: (-span[0], not cover.still_needs(span[1]))
            )
            cover.cover(topic, WORD_GAIN * (end - at) - SLIP_LOSS * slips, slips)
            return end
        token = self.tokens[at]
        for word in (token.word, *token.near):
            if cover.accepts(word):
                slips = int(word != token.word)
                cover.cover(word, WORD_GAIN - SLIP_LOSS * slips, slips)
                return at + 1
        for element in cover.open_slots():
            for reading in self._values(element, at):
                cover.fill(element, reading)
                return reading.end
        return self._past_soft(cover, at)

    def _past_soft(self, cover: _Coverage, at: int) -> int | None:
        token = self.tokens[at]
        if token.kind == "mark" or token.word in self._gists.soft:
            cover.score -= SKIP_LOSS
            return at + 1
        if any(word in self._gists.soft for word in token.near):
            cover.score -= SLIP_LOSS
            return at + 1
        # "Here" is the default place of every request.
        place = PatternElement(op="slot", names=("path",), slot="path", mode="strict")
        for reading in self.clause.readings(place, at):
            if reading.value == "." and not reading.reference:
                return reading.end
        return None

    def _values(self, element: PatternElement, at: int) -> Iterator[SlotReading]:
        token = self.tokens[at]
        match element.names[0]:
            case "program":
                if self._may_be_program(token.word):
                    yield SlotReading(end=at + 1, value=token.text, gain=1.5)
            case "variable":
                if _VARIABLE.fullmatch(token.text):
                    yield SlotReading(end=at + 1, value=token.text, gain=1.5)
            case "path" | "target":
                yield from self._paths(element, at)
            case "folder":
                for reading in self._paths(element, at):
                    if not looks_like_file(reading.value):
                        yield reading
            case _:
                yield from self.clause.readings(element, at)

    def _may_be_program(self, word: str) -> bool:
        everyday = word in EVERYDAY_PROGRAMS and self._gists.knows(word)
        return word in PROGRAMS and not everyday and word not in self._gists.soft

    def _paths(self, element: PatternElement, at: int) -> Iterator[SlotReading]:
        places = self.clause.language.data.places.values() if element.mode == "strict" else ()
        yield from (each for each in self._strong_paths(at) if each.value not in places)
        if element.mode != "strict" and self._may_be_name(at, anywhere=element.mode == "rest"):
            yield SlotReading(end=at + 1, value=self.tokens[at].text, gain=NAME_GAIN)

    def _strong_paths(self, at: int) -> list[SlotReading]:
        """Looks like a path or is introduced as one, and has no other meaning."""
        strict = PatternElement(op="slot", names=("path",), slot="path", mode="strict")
        return [
            replace(reading, gain=min(reading.gain, PATH_GAIN))
            for reading in self.clause.readings(strict, at)
            if not reading.reference and not self._gists.knows(reading.value)
        ]

    def _may_be_name(self, at: int, *, anywhere: bool) -> bool:
        """True for "src" in "the files in src": an unknown word where a name is expected."""
        token = self.tokens[at]
        if at == 0 or token.kind != "word" or not token.text[0].isalnum():
            return False
        before = self.tokens[at - 1].word
        data = self.clause.language.data
        if before in data.definite or before in data.indefinite:
            return False
        placed = anywhere or before in self._gists.before_names
        return placed and not self._gists.knows(token.word)

    def _spans_at(self, at: int) -> list[Span]:
        """The topics that start here, longest first."""
        found: list[Span] = []
        for stem in self._stems[at]:
            for stems, topic in self._gists.phrases.get(stem, ()):
                slips = self._slips(stems, at)
                if slips is not None:
                    found.append((at + len(stems), topic, slips))
        found.sort(key=lambda span: (-span[0], span[2]))
        return found

    def _slips(self, stems: tuple[str, ...], at: int) -> int | None:
        if at + len(stems) > len(self.tokens):
            return None
        slips = 0
        for stem, own in zip(stems, self._stems[at:], strict=False):
            if stem not in own:
                return None
            slips += stem not in own[:AS_WRITTEN]
        return slips


class _Coverage:
    """What a reading has covered so far."""

    def __init__(self, elements: tuple[PatternElement, ...]) -> None:
        self._topics = {name for each in elements if each.op != "slot" for name in each.names}
        self._slots = [each for each in elements if each.op == "slot"]
        self._needed = [each for each in elements if not each.optional]
        self._seen: set[str] = set()
        self.slots: dict[str, str] = {}
        self.score = 0.0
        self.slips = 0

    def accepts(self, topic: str) -> bool:
        return topic in self._topics

    def still_needs(self, topic: str) -> bool:
        return topic not in self._seen and any(topic in each.names for each in self._needed)

    def cover(self, topic: str, gain: float, slips: int) -> None:
        self._seen.add(topic)
        self.score += gain
        self.slips += slips

    def open_slots(self) -> Iterator[PatternElement]:
        return (each for each in self._slots if each.names[0] not in self._seen)

    def fill(self, element: PatternElement, reading: SlotReading) -> None:
        self._seen.add(element.names[0])
        self.score += reading.gain
        self.slots["path" if element.names[0] == "folder" else element.names[0]] = reading.value

    def complete(self) -> bool:
        return all(any(name in self._seen for name in each.names) for each in self._needed)


def _is_unknown(gists: Keywords, token: TextToken) -> bool:
    return (
        token.kind == "word" and token.word not in gists.soft and not gists.is_keyword(token.word)
    )


def _with_corrections(gists: Keywords, token: TextToken) -> TextToken:
    """Adds the keywords that a misspelt word may stand for."""
    near = near_keywords(gists, token.word) if _is_unknown(gists, token) else ()
    return replace(token, near=near) if near != token.near else token


def _stems(gists: Keywords, token: TextToken) -> tuple[str, ...]:
    """As written, without and with its ending; then its possible corrections."""
    if token.kind in ("quoted", "mark", "path", "glob", "url"):
        return ()
    near = [form for word in token.near for form in (gists.stem(word), f"={word}")]
    return (gists.stem(token.word), f"={token.word}", *near)
