"""Sentences that sound like orders to change something: nothing may be changed."""

from __future__ import annotations

import shlex
from pathlib import Path

from hermes.codec.values import JsonObject
from tests.providers.offline.talk import WARM, Talk

TRAPS = (Path(__file__).parent / "traps.txt").read_text("utf-8").splitlines()

READING_PROGRAMS = {"ls", "cd", "df", "du", "date", "find", "free", "pwd", "which"}
READING_TOOLS = {"read_file", "search_files", "clarify"}


def only_reads(name: str, arguments: JsonObject) -> bool:
    if name == "terminal":
        return shlex.split(str(arguments["command"]))[0] in READING_PROGRAMS
    return name in READING_TOOLS or (name == "todo" and not arguments)


async def test_nothing_is_changed() -> None:
    made = {text: (await Talk(messages=WARM).say(text)).calls for text in TRAPS}
    wrong = {
        text: calls for text, calls in made.items() if not all(only_reads(*call) for call in calls)
    }
    assert wrong == {}


def test_there_are_hundreds_of_them() -> None:
    assert len(set(TRAPS)) == len(TRAPS) > 300
