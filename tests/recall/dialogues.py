"""Long dialogues between two people, with questions about them that name their evidence.

Each dialogue is written by hand. Small talk that many people could have is put between its
exchanges, and sessions of nothing but small talk between its sessions, so that what is asked for
has to be found among much that is like it.
"""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "corpus"
KINDS = {"s": "single", "m": "multi", "t": "temporal", "o": "open", "a": "adversarial"}
HELD_OUT = frozenset({"marcus_leila", "nadia_victor", "beth_callum"})
"""Dialogues that nothing is tuned on."""

_SESSIONS_OF_ASIDES = 10
_SECONDS_BETWEEN_LINES = 40
_LINE = re.compile(r"(?P<who>\w)(?: (?P<label>\w+))?: (?P<text>.*)")
_DAY = 86_400


class Line(NamedTuple):
    speaker: str
    text: str
    label: str = ""


class Session(NamedTuple):
    id: str
    at: float
    lines: tuple[Line, ...]


class Question(NamedTuple):
    """`evidence` are places of lines: session id and the number of the line, from 0."""

    kind: str
    text: str
    evidence: tuple[tuple[str, int], ...]


class Dialogue(NamedTuple):
    name: str
    speakers: tuple[str, str]
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]


Written = list[Line]
Asked = tuple[str, list[str], str]
"""The letter of its kind, the labels of its evidence, and the question."""


@cache
def dialogues() -> tuple[Dialogue, ...]:
    return tuple(map(dialogue, sorted((FOLDER / "dialogues").glob("*.txt"))))


def tuned() -> tuple[Dialogue, ...]:
    return tuple(each for each in dialogues() if each.name not in HELD_OUT)


def held_out() -> tuple[Dialogue, ...]:
    return tuple(each for each in dialogues() if each.name in HELD_OUT)


def dialogue(path: Path) -> Dialogue:
    speakers, written, asked = read(path)
    return arranged(path.stem, speakers, _padded(path.stem, speakers, written), asked)


def read(path: Path) -> tuple[tuple[str, str], list[tuple[float, Written]], list[Asked]]:
    """Who speaks, what is written of each session, and what is asked."""
    head, *blocks = path.read_text().split("\n== ")
    speakers = (head.split()[1], head.split()[2])
    asked: list[Asked] = []
    written: list[tuple[float, Written]] = []
    for block in blocks:
        moment, *rows = block.splitlines()
        at = datetime.strptime(moment, "%Y-%m-%d %H:%M").replace(tzinfo=UTC).timestamp()
        written.append((at, [_line(row, speakers) for row in rows if not row.startswith("? ")]))
        asked += [_asked(row) for row in rows if row.startswith("? ")]
    return speakers, written, asked


def arranged(
    name: str,
    speakers: tuple[str, str],
    made: list[tuple[float, Written]],
    asked: list[Asked],
) -> Dialogue:
    """The sessions by time, with their names; the questions with the places of their evidence."""
    sessions = tuple(
        Session(f"{name}-{number:02}", at, tuple(lines))
        for number, (at, lines) in enumerate(sorted(made, key=lambda one: one[0]), 1)
    )
    places = {
        line.label: (session.id, number)
        for session in sessions
        for number, line in enumerate(session.lines)
        if line.label
    }
    questions = [
        Question(KINDS[kind], text, tuple(places[label] for label in labels))
        for kind, labels, text in asked
    ]
    return Dialogue(name, speakers, sessions, tuple(questions))


def _line(row: str, speakers: tuple[str, str]) -> Line:
    found = _LINE.fullmatch(row)
    assert found, row
    (speaker,) = (name for name in speakers if name[0] == found["who"])
    return Line(speaker, found["text"], found["label"] or "")


def _asked(row: str) -> Asked:
    head, _, text = row.removeprefix("? ").partition(" | ")
    kind, *labels = head.split()
    return kind, labels, text


def _padded(
    name: str, speakers: tuple[str, str], written: list[tuple[float, Written]]
) -> list[tuple[float, Written]]:
    """The written sessions with small talk before and after, and sessions of small talk."""
    chance = random.Random(name)
    talk = asides()
    chance.shuffle(talk)
    aside = iter(talk)
    made: list[tuple[float, Written]] = [
        (
            at,
            [
                *spoken(next(aside), speakers, chance),
                *lines,
                *spoken(next(aside), speakers, chance),
            ],
        )
        for at, lines in written
    ]
    first, last = written[0][0], written[-1][0]
    for number in range(_SESSIONS_OF_ASIDES):
        at = first + (last - first) * (number + 0.5) / _SESSIONS_OF_ASIDES + chance.random() * _DAY
        some = [next(aside, None) for _ in range(3)]
        made.append((at, [line for one in some if one for line in spoken(one, speakers, chance)]))
    return made


def asides() -> list[list[str]]:
    blocks = (FOLDER / "asides.txt").read_text().strip().split("\n\n")
    return [block.splitlines() for block in blocks]


def spoken(rows: list[str], speakers: tuple[str, str], chance: random.Random) -> list[Line]:
    order = chance.sample(speakers, 2)
    return [Line(order[int(row[0]) - 1], row[3:]) for row in rows]


def moment(session: Session, number: int) -> float:
    return session.at + number * _SECONDS_BETWEEN_LINES
