"""Chats of two friends over months: their news is written by hand, the small talk around it drawn.

What they tell each other stands in a file, with the questions about it. Between it they greet each
other, wonder, ask back and come back to what was told weeks ago, so that a session has about twenty
lines and what is asked for is named in many sessions and told in one.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from tests.recall.dialogues import FOLDER, Dialogue, Line, Written, arranged, asides, read, spoken

HELD_OUT = frozenset({"omar_linh", "wendy_carlos", "ella_zack", "quinn_vera"})
"""Chats that nothing is tuned on."""

_TOPIC = re.compile(r"\{(.*?)\}")
_ASKS_BACK = 0.55
_COMES_BACK = 0.7
_QUIET_SESSIONS = 3
_QUIET_AFTER = 3 * 86_400.0
_QUIET_ASIDES = 3


@cache
def chats() -> tuple[Dialogue, ...]:
    return tuple(map(_chat, sorted((FOLDER / "chats").glob("*.txt"))))


def tuned() -> tuple[Dialogue, ...]:
    return tuple(each for each in chats() if each.name not in HELD_OUT)


def held_out() -> tuple[Dialogue, ...]:
    return tuple(each for each in chats() if each.name in HELD_OUT)


def _chat(path: Path) -> Dialogue:
    speakers, written, asked = read(path)
    talk = _Talk(path.stem, speakers)
    quiet = {len(written) * number // _QUIET_SESSIONS for number in range(1, _QUIET_SESSIONS + 1)}
    made: list[tuple[float, Written]] = []
    for number, (at, lines) in enumerate(written, 1):
        made.append((at, talk.session(lines)))
        if number in quiet:
            made.append((at + _QUIET_AFTER, talk.session([])))
    return arranged(path.stem, speakers, made, asked)


class _Talk:
    """What is said around the news; it remembers what was told before."""

    def __init__(self, name: str, speakers: tuple[str, str]) -> None:
        self._chance = random.Random(name)
        self._speakers = speakers
        self._told: list[tuple[str, str]] = []

    def session(self, news: list[Line]) -> list[Line]:
        first, second = self._chance.sample(self._speakers, 2)
        lines = [*self._said("greeting", first), *self._said("greeting back", second)]
        fresh: list[tuple[str, str]] = []
        for one in news:
            found = _TOPIC.search(one.text)
            topic = _named(found[1]) if found else "that"
            fresh.append((one.speaker, topic))
            lines.append(one._replace(text=_TOPIC.sub(r"\1", one.text)))
            lines += self._around(one.speaker, topic)
        self._told += fresh
        for _ in range(1 if news else _QUIET_ASIDES):
            lines += spoken(self._chance.choice(asides()), self._speakers, self._chance)
            lines += self._earlier()
        return [*lines, *self._said("goodbye", first), *self._said("goodbye back", second)]

    def _around(self, speaker: str, topic: str) -> Written:
        other = self._other(speaker)
        lines = [*self._said("reaction", other, topic), *self._said("answer", speaker)]
        if self._chance.random() < _ASKS_BACK:
            place = self._chance.randrange(len(_chatter()["question"]))
            lines += self._said("question", other, place=place)
            lines += self._said("detail", speaker, place=place)
        return lines + self._earlier()

    def _earlier(self) -> Written:
        if not self._told or self._chance.random() > _COMES_BACK:
            return []
        teller, topic = self._chance.choice(self._told)
        return [
            *self._said("earlier", self._other(teller), topic),
            *self._said("later", teller),
        ]

    def _said(
        self, part: str, speaker: str, topic: str = "", place: int | None = None
    ) -> list[Line]:
        some = _chatter()[part]
        text = self._chance.choice(some) if place is None else some[place]
        text = text.replace("{it}", topic).replace("{name}", self._other(speaker))
        return [Line(speaker, text)]

    def _other(self, speaker: str) -> str:
        return self._speakers[speaker == self._speakers[0]]


def _named(topic: str) -> str:
    """As one speaks of a thing that was just told."""
    return topic if topic[0].isupper() or topic.endswith("s") else f"the {topic}"


@cache
def _chatter() -> dict[str, list[str]]:
    parts: defaultdict[str, list[str]] = defaultdict(list)
    part = ""
    for line in (Path(FOLDER) / "chatter.txt").read_text().splitlines():
        if line.startswith("["):
            part = line[1:-1]
        elif not line.startswith("#"):
            parts[part].append(line)
    return dict(parts)
