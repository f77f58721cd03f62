"""How much of what was said is found again: questions about long dialogues, asked as they are.

Prints one JSON line for each store and way of finding. In the chats a question mostly shares a word
with its answer, which is told once and named in many sessions; in the dialogues it mostly does not;
the friends are asked about in other words than theirs; in the lives, each in a store of its own,
the same themes return all the time and answers need not name them.
The floor is SQLite's own full-text index with stemming, asked for any of the words that are no stop
words; both see the same messages.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sqlite3
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.measure import report
from hermes.core.world import World
from hermes.journal.import_ import import_lines
from hermes.journal.index.search import SearchIndex
from hermes.journal.index.source import JournalFile
from hermes.journal.index.terms import is_stop_word
from hermes.journal.journal import SqliteJournal
from hermes.recall.archive import PastSessions, SearchFilter
from hermes.recall.tools import format_results
from tests.recall import chats, dialogues, friends, lives
from tests.recall.dialogues import Dialogue, Question, moment

PAGE_BYTES = 6_500
SESSIONS = 5
LABELS = ("tuned", "held-out")
FIRST_MESSAGE = 2
_HEAD = re.compile(r"\[([^\]]+)\] ")
_LINE = re.compile(r"(\d+)[><#] ")

Place = tuple[str, int]


class Answer(NamedTuple):
    """The sessions that were found, best first; the lines that were shown, and in how much."""

    sessions: list[str]
    shown: set[Place]
    size: int


class Tally:
    def __init__(self) -> None:
        self.count = 0
        self.first = self.five = self.shown = 0.0
        self.size = 0

    def add(self, question: Question, answer: Answer) -> None:
        wanted = {session for session, _ in question.evidence}
        self.count += 1
        self.first += len(wanted & set(answer.sessions[:1])) / len(wanted)
        self.five += len(wanted & set(answer.sessions[:SESSIONS])) / len(wanted)
        self.shown += len(set(question.evidence) & answer.shown) / len(set(question.evidence))
        self.size += answer.size

    def facts(self) -> dict[str, float]:
        return {
            "questions": self.count,
            "recall_at_1": round(100 * self.first / self.count, 1),
            "recall_at_5": round(100 * self.five / self.count, 1),
            "evidence_shown": round(100 * self.shown / self.count, 1),
            "page_bytes": round(self.size / self.count),
        }


def lines(some: Iterable[Dialogue], *, named: bool, copies: int = 1) -> Iterator[bytes]:
    """As `hermes sessions import` takes them; with the speaker's name before each text or not."""
    for copy in range(copies):
        for dialogue in some:
            for session in dialogue.sessions:
                for number, line in enumerate(session.lines):
                    role = "user" if line.speaker == dialogue.speakers[0] else "assistant"
                    text = f"{line.speaker}: {line.text}" if named else line.text
                    name = session.id if not copy else f"copy{copy}-{session.id}"
                    at = moment(session, number)
                    said = {"session": name, "at": at, "role": role, "text": text}
                    yield json.dumps(said).encode() + b"\n"


class Ours:
    """The default call of the tool."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "hermes.db"
        self.index_path = folder / "index.db"
        self._journal = SqliteJournal(self._path, World())
        self.index = SearchIndex(self.index_path, JournalFile(self._path))
        self._archive = PastSessions(self._journal, self.index, session_id="none")

    async def take(self, said: Iterable[bytes]) -> None:
        await import_lines(self._journal, said)
        await self.index.catch_up()

    async def ask(self, query: str) -> Answer:
        found = await self._archive.discover(query, SearchFilter())
        page = format_results(found, most_sessions=20)[0] if found.passages else ""
        shown = shown_in(page)
        sessions = list(dict.fromkeys(session for session, _ in shown))
        return Answer(sessions, set(shown), len(page.encode()))

    async def close(self) -> None:
        await self._journal.close()


def shown_in(page: str) -> list[Place]:
    """The lines of a page, in their order."""
    found: list[Place] = []
    session = ""
    for line in page.splitlines():
        if head := _HEAD.match(line):
            session = head[1]
        elif place := _LINE.match(line):
            found.append((session, int(place[1]) - FIRST_MESSAGE))
    return found


class Plain:
    """SQLite's index: any of the words, best messages first, each with two beside it."""

    def __init__(self, said: Iterable[bytes]) -> None:
        self._rows = [json.loads(line) for line in said]
        self._db = sqlite3.connect(":memory:")
        self._db.execute("CREATE VIRTUAL TABLE words USING fts5(text, tokenize='porter unicode61')")
        texts = ((number, row["text"]) for number, row in enumerate(self._rows))
        self._db.executemany("INSERT INTO words(rowid, text) VALUES (?, ?)", texts)
        self._places: list[Place] = []
        for number, row in enumerate(self._rows):
            same = number and self._rows[number - 1]["session"] == row["session"]
            self._places.append((row["session"], self._places[-1][1] + 1 if same else 0))

    def asked(self, question: Question) -> Answer:
        words = re.findall(r"\w+", question.text.lower())
        wanted = " OR ".join(f'"{word}"' for word in words if not is_stop_word(word))
        sql = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT 60"
        hits = [number for (number,) in self._db.execute(sql, (wanted,))] if wanted else []
        sessions = list(dict.fromkeys(self._places[number][0] for number in hits))
        shown: dict[Place, None] = {}
        size = 0
        for number in hits:
            for near in range(max(0, number - 2), min(len(self._rows), number + 3)):
                place = self._places[near]
                if place[0] != self._places[number][0] or place in shown:
                    continue
                size += len(self._rows[near]["text"].encode()) + 8
                if size <= PAGE_BYTES:
                    shown[place] = None
        return Answer(sessions, set(shown), min(size, PAGE_BYTES))


def summed(answers: Iterable[tuple[Question, Answer]]) -> dict[str, dict[str, float]]:
    """By kind, and of all kinds but the questions that name the wrong person."""
    tallies: defaultdict[str, Tally] = defaultdict(Tally)
    for question, answer in answers:
        tallies[question.kind].add(question, answer)
        if question.kind != "adversarial":
            tallies["all"].add(question, answer)
    return {kind: tally.facts() for kind, tally in sorted(tallies.items())}


class Part(NamedTuple):
    """Questions about dialogues, by the store that these are in, beside others or alone."""

    corpus: str
    label: str
    stores: Sequence[tuple[Sequence[Dialogue], Sequence[Dialogue]]]


def parts() -> tuple[Part, ...]:
    together = [
        Part(corpus, label, [(room, asked)])
        for corpus, room, both in (
            ("chats", chats.chats(), (chats.tuned(), chats.held_out())),
            ("dialogues", dialogues.dialogues(), (dialogues.tuned(), dialogues.held_out())),
            ("friends", friends.friends(), (friends.tuned(), friends.held_out())),
        )
        for label, asked in zip(LABELS, both, strict=True)
    ]
    alone = [
        Part("lives", label, [([one], [one]) for one in some])
        for label, some in zip(LABELS, (lives.tuned(), lives.held_out()), strict=True)
    ]
    return (*together, *alone)


class Found:
    """What both ways of finding have answered, and what ours has cost."""

    def __init__(self) -> None:
        self.ours: list[tuple[Question, Answer]] = []
        self.plain: list[tuple[Question, Answer]] = []
        self.messages = self.text = self.index = 0
        self.seconds = 0.0

    async def take(self, said: Sequence[bytes], asked: Sequence[Dialogue]) -> None:
        questions = [question for dialogue in asked for question in dialogue.questions]
        with tempfile.TemporaryDirectory() as folder:
            ours = Ours(Path(folder))
            await ours.take(said)
            begun = time.process_time()
            self.ours += [(one, await ours.ask(one.text)) for one in questions]
            self.seconds += time.process_time() - begun
            self.index += ours.index_path.stat().st_size
            await ours.close()
        plain = Plain(said)
        self.plain += [(one, plain.asked(one)) for one in questions]
        self.messages += len(said)
        self.text += sum(len(json.loads(line)["text"].encode()) for line in said)


async def found_in(part: Part, *, named: bool, copies: int = 1) -> Found:
    found = Found()
    for stored, asked in part.stores:
        await found.take(list(lines(stored, named=named, copies=copies)), asked)
    return found


async def measure(part: Part, *, named: bool, copies: int) -> None:
    found = await found_in(part, named=named, copies=copies)
    facts = {
        "corpus": part.corpus,
        "part": part.label,
        "names": named,
        "messages": found.messages,
        "cpu_ms": round(found.seconds / len(found.ours) * 1000, 1),
        "index_ratio": round(found.index / found.text, 2),
    }
    if copies > 1:
        # Copies answer each other's questions: they only show what a search costs.
        report("recall cost", **facts)
        return
    report("recall", **facts, **summed(found.ours))
    report("recall floor", **facts, **summed(found.plain))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=1, help="how often the dialogues are stored")
    parser.add_argument("--corpus", choices=("chats", "dialogues", "friends", "lives"))
    parser.add_argument("--only", choices=LABELS)
    options = parser.parse_args()
    for part in parts():
        if options.corpus in (None, part.corpus) and options.only in (None, part.label):
            for named in (True, False):
                asyncio.run(measure(part, named=named, copies=options.copies))


if __name__ == "__main__":
    main()
