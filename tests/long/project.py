"""A long project: a user who plants facts, and a model that works with what it can see."""

from __future__ import annotations

import random
from collections import Counter
from typing import NamedTuple

from hermes.codec.json import decode
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says

KINDS = ("constraint", "rejected", "path", "id")
FILES = 24


class Fact(NamedTuple):
    """`words` is the sentence that the user says; `question` asks for `answer`."""

    kind: str
    words: str
    question: str
    answer: str


def facts(count: int) -> list[Fact]:
    found = []
    for n in range(count):
        match KINDS[n % len(KINDS)]:
            case "constraint":
                words = f"Never let service-{n} write to table orders_{n * 7}."
                fact = Fact("constraint", words, f"table of service-{n}", f"orders_{n * 7}")
            case "rejected":
                words = f"We rejected the Redis cache for screen {n}, it lost updates of kind Q{n}."
                fact = Fact("rejected", words, f"cache for screen {n} rejected why", f"Q{n}")
            case "path":
                words = f"The fixtures of suite {n} live in data/fixtures/set_{n * 13}.json."
                fact = Fact("path", words, f"where are the fixtures of suite {n}", f"set_{n * 13}")
            case _:
                words = f"The ticket for importer {n} is OPS-{4000 + n * 3}."
                fact = Fact("id", words, f"ticket for importer {n}", f"OPS-{4000 + n * 3}")
        found.append(fact)
    return found


class User:
    """What is said in each turn: work, now and then with a fact in it."""

    def __init__(self, turns: int, planted: list[Fact]) -> None:
        chance = random.Random(7)
        places = sorted(chance.sample(range(turns * 3 // 5), len(planted)))
        self.plan = dict(zip(places, planted, strict=True))
        self.turns = turns
        self._chance = chance

    def words(self, turn: int) -> str:
        file = self._chance.randrange(FILES) if turn % 3 else turn // 3 % FILES
        chatter = " ".join(f"detail{self._chance.randrange(10_000)}" for _ in range(30))
        fact = self.plan.get(turn)
        said = f" {fact.words}" if fact else ""
        return (
            f"Step {turn}: look into src/part{file}.txt and go on with item {turn}.{said} {chatter}"
        )


class Model:
    """Reads a file that it is told to look into, unless the request shows that it knows it; then
    answers with some words. Asked to recall something, it makes one search."""

    def __init__(self) -> None:
        self.reads: Counter[str] = Counter()

    def __call__(self, request: Request) -> Step:
        newest = [said for said in request.messages if said.role == "user"][-1].text
        if "Recall:" in newest:
            return self._recall(request, newest.rpartition("Recall:")[2])
        if request.results:
            return says(f"Looked into it; the first row says {request.last_text[:24]!r}.")
        name = _file_in(newest)
        if name and not self._knows(request, name):
            self.reads[name] += 1
            return calls("read_file", path=f"src/{name}")
        return says("That is done; the next item can follow. " + "So it goes. " * 20)

    def _recall(self, request: Request, wanted: str) -> Step:
        session_id, _, question = wanted.strip().partition(" ")
        if request.results:
            return says(request.last_text)
        return calls("session_search", query=question, session_id=session_id)

    @staticmethod
    def _knows(request: Request, name: str) -> bool:
        """It was read, and is in view or on the list of files that need not be read again."""
        for said in request.messages:
            if said.role == "assistant" and any(
                _reads(call.arguments, name) for call in said.calls
            ):
                return True
            if "Files already read" in said.text:
                listed = said.text.partition("Files already read")[2].partition("\n\n")[0]
                if name in listed:
                    return True
        return False


def _file_in(text: str) -> str:
    _, found, rest = text.rpartition("look into src/")
    return rest.split()[0] if found else ""


def _reads(arguments: str, name: str) -> bool:
    return decode(dict[str, object], arguments.encode()).get("path") == f"src/{name}"
