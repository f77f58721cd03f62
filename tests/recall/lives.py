"""Two friends who come back to the same few themes for a year, as people do.

Each theme is a story in five parts, written by hand: what one of them tells, what the other says to
it, and what is told when the other asks back. The same words come up in many sessions, also where
nothing new is told, and much of what is asked for is only said as an answer. Every dialogue is
meant for a store of its own: the stories of one return in others, with other people.
"""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple

from tests.recall.dialogues import FOLDER, Asked, Dialogue, Line, Written, arranged

_NAMES = {
    "tuned": "Abby Ruben, Carmen Lewis, Derek Joan, Esther Milo, Frank Selma, Gail Tobias",
    "held_out": "Harriet Ned, Ines Walter, Kurt Maya, Laura Simon",
}
_THEMES_EACH = 3
_SESSIONS = 24
_TWO_PARTS = 0.5
_MUSES = 0.6
_CHECKS = (1, 2)
_FIRST = datetime(2023, 1, 9, 18, 30, tzinfo=UTC).timestamp()
_DAYS_BETWEEN = (7, 21)
_LINE = re.compile(r"(?P<who>[<>])(?P<label>\w*) (?P<text>.*)")

Row = tuple[str, str, str]
"""Who speaks, `<` for the one who tells; the label; the text."""


class Theme(NamedTuple):
    """`checks` are pairs of lines that come up where nothing is told."""

    name: str
    parts: list[list[Row]]
    checks: list[tuple[str, str]]
    asked: list[Asked]


def tuned() -> tuple[Dialogue, ...]:
    return _lives("tuned")


def held_out() -> tuple[Dialogue, ...]:
    """Lives that nothing is tuned on; their themes are not those of the others."""
    return _lives("held_out")


def lives() -> tuple[Dialogue, ...]:
    return tuned() + held_out()


@cache
def _lives(which: str) -> tuple[Dialogue, ...]:
    blocks = (FOLDER / "lives" / f"{which}.txt").read_text().split("## ")[1:]
    themes = [_theme(block) for block in blocks]
    names = [tuple(pair.split()) for pair in _NAMES[which].split(", ")]
    return tuple(
        _Life(first, second, themes, number).dialogue()
        for number, (first, second) in enumerate(names)
    )


def _theme(block: str) -> Theme:
    name, *rows = block.strip().splitlines()
    parts: list[list[Row]] = []
    greetings: list[str] = []
    asked: list[Asked] = []
    for row in filter(None, rows):
        if row == "@":
            parts.append([])
        elif row.startswith("? "):
            head, _, text = row[2:].partition(" | ")
            kind, *labels = head.split()
            asked.append((kind, [f"{name}_{label}" for label in labels], text))
        elif row[1] == "~":
            greetings.append(row[3:])
        else:
            found = _LINE.fullmatch(row)
            assert found, row
            label = f"{name}_{found['label']}" if found["label"] else ""
            parts[-1].append((found["who"], label, found["text"]))
    return Theme(name, parts, list(zip(greetings[::2], greetings[1::2], strict=True)), asked)


class _Life:
    """One dialogue: both speakers with their themes, part after part."""

    def __init__(self, first: str, second: str, themes: list[Theme], number: int) -> None:
        self._chance = random.Random(first + second)
        self._speakers = (first, second)
        count = 2 * _THEMES_EACH
        own = [themes[(number * count + place) % len(themes)] for place in range(count)]
        if number * count >= len(themes):
            own = self._chance.sample(themes, count)
        self._tellers = {theme.name: self._speakers[place % 2] for place, theme in enumerate(own)}
        self._themes = own

    def dialogue(self) -> Dialogue:
        told: set[str] = set()
        at = _FIRST
        made: list[tuple[float, Written]] = []
        for parts in self._spread():
            made.append((at, self._session(parts, told)))
            told.update(theme.name for theme, _ in parts)
            at += self._chance.randint(*_DAYS_BETWEEN) * 86_400 + self._chance.randint(0, 7_200)
        asked = [
            (kind, labels, text.replace("{me}", self._tellers[theme.name]))
            for theme in self._themes
            for kind, labels, text in theme.asked
        ]
        return arranged("_".join(self._speakers).lower(), self._speakers, made, asked)

    def _spread(self) -> list[list[tuple[Theme, list[Row]]]]:
        """Which parts are told in which session: those of a theme in their order."""
        left = [list(theme.parts) for theme in self._themes]
        sessions: list[list[tuple[Theme, list[Row]]]] = []
        for number in range(_SESSIONS):
            rest = sum(map(len, left))
            count = min(rest, max(1, round(rest / (_SESSIONS - number))))
            count += rest > count and self._chance.random() < _TWO_PARTS
            most = sorted(
                range(len(left)), key=lambda one: (-len(left[one]), self._chance.random())
            )
            some = [one for one in most[:4] if left[one]]
            chosen = self._chance.sample(some, min(count, len(some)))
            sessions.append([(self._themes[one], left[one].pop(0)) for one in chosen])
        assert not any(left)
        return sessions

    def _session(self, parts: list[tuple[Theme, list[Row]]], told: set[str]) -> Written:
        first, second = self._chance.sample(self._speakers, 2)
        lines = self._pair("hello", first, second)
        for theme, rows in parts:
            lines += self._part(theme, rows)
            if self._chance.random() < _MUSES:
                lines += self._pair("muse", *self._chance.sample(self._speakers, 2))
        others = [t for t in self._themes if t.name in told and t not in [p for p, _ in parts]]
        for theme in self._chance.sample(others, min(len(others), self._chance.randint(*_CHECKS))):
            teller = self._tellers[theme.name]
            asks, answers = self._chance.choice(theme.checks)
            lines += [self._line(self._other(teller), asks), self._line(teller, answers)]
        return [*lines, *self._pair("bye", first, second)]

    def _part(self, theme: Theme, rows: list[Row]) -> Written:
        teller = self._tellers[theme.name]
        lines: Written = []
        for who, label, text in rows:
            speaker = teller if who == "<" else self._other(teller)
            lines.append(self._line(speaker, text, label))
        last = lines[-1].speaker
        return [*lines, *self._pair("cheer", self._other(last), last)]

    def _pair(self, part: str, first: str, second: str) -> Written:
        return [
            self._line(first, self._chance.choice(_talk()[part])),
            self._line(second, self._chance.choice(_talk()[f"{part} back"])),
        ]

    def _line(self, speaker: str, text: str, label: str = "") -> Line:
        return Line(speaker, text.replace("{you}", self._other(speaker)), label)

    def _other(self, speaker: str) -> str:
        return self._speakers[speaker == self._speakers[0]]


@cache
def _talk() -> dict[str, list[str]]:
    parts = (FOLDER / "lives" / "talk.txt").read_text().split("[")[1:]
    pairs = (part.split("]\n") for part in parts)
    return {name: text.strip().splitlines() for name, text in pairs}
