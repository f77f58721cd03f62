"""Two friends who write to each other every few weeks: all of it is written by hand.

Whoever asks uses other words than those who speak, as people do who remember what was said and not
how. Small talk is put around the written sessions, as in the dialogues.
"""

from __future__ import annotations

from functools import cache

from tests.recall.dialogues import FOLDER, Dialogue, dialogue

HELD_OUT = frozenset({"imogen_pascal", "jasper_uma"})
"""Friends that nothing is tuned on."""


@cache
def friends() -> tuple[Dialogue, ...]:
    return tuple(map(dialogue, sorted((FOLDER / "friends").glob("*.txt"))))


def tuned() -> tuple[Dialogue, ...]:
    return tuple(each for each in friends() if each.name not in HELD_OUT)


def held_out() -> tuple[Dialogue, ...]:
    return tuple(each for each in friends() if each.name in HELD_OUT)
