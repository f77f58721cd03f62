"""Compares stores for full-text search under one ranking: the index of Hermes, SQLite FTS5 and
tantivy.

Every store delivers candidates from the same journal; `MessageScorer` and the weights of sessions
order them. The journal holds filler messages and long dialogues, with questions whose evidence is
known. FTS5 has one table of words (porter, unicode61) and one of trigrams; tantivy has the same two
as fields. Both get the query planner of the index: they rank by the rarest words only.
Prints one JSON line per store. `tantivy` is measured only where it is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sqlite3
import tempfile
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

from bench import recall
from bench.measure import report
from bench.search import Sample, Writer, line_of, quantiles, queries
from hermes.core.world import World
from hermes.journal.import_ import import_lines
from hermes.journal.index.answer import order
from hermes.journal.index.candidates import CandidateMessage
from hermes.journal.index.file import IndexFile, create
from hermes.journal.index.lookup import rarity
from hermes.journal.index.query import QueryClause, loosen, parse_question
from hermes.journal.index.rank import Message, MessageScorer, ScoredMessage, message_of
from hermes.journal.index.results import with_sessions
from hermes.journal.index.search import SearchIndex
from hermes.journal.index.source import EventRow, JournalFile, text_of
from hermes.journal.index.terms import fold, stem, terms
from hermes.journal.index.upkeep import Sizes, advance
from hermes.journal.journal import SqliteJournal
from tests.recall import chats, dialogues, friends
from tests.recall.dialogues import Question

CANDIDATES = 256
SESSIONS_SHOWN, MESSAGES_SHOWN = 5, 20
MOST_RANKED_ROWS = 8_192
COMMON_SHARE = 0.1
MOST_RANKED_CLAUSES = 3
NEIGHBOUR = 0.5
FILLER_SESSION = 40
NOW = 1_790_000_000.0
INSERTS = 100

Place = tuple[str, int]
P = ParamSpec("P")
T = TypeVar("T")


class Store(Protocol):
    name: str

    def build(self, rows: Iterable[EventRow]) -> None: ...

    def insert(self, row: EventRow) -> None:
        """Index one row and make it visible to the next search."""
        ...

    def search(self, query: str) -> list[Place]:
        """The session and record number of the best messages, best first."""
        ...

    def bytes(self) -> int: ...


class Journal:
    """The journal of all stores, and the neighbours of its messages."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.source = JournalFile(path)
        self.ids: list[int] = []
        self.sessions: list[int] = []

    def rows(self) -> Iterator[EventRow]:
        known: dict[str, int] = {}
        after = 0
        while rows := self.source.rows(after, 512):
            for row in rows:
                self.ids.append(row.id)
                self.sessions.append(known.setdefault(row.session_id, len(known)))
                yield row
            after = rows[-1].id
        self.source.close()

    def neighbours(self, id: int) -> list[int]:
        at = bisect_left(self.ids, id)
        near = [place for place in (at - 1, at + 1) if 0 <= place < len(self.ids)]
        return [self.ids[place] for place in near if self.sessions[place] == self.sessions[at]]


class Ours:
    name = "hermes"

    def __init__(self, folder: Path, journal: Journal) -> None:
        self._journal = journal
        self._path = folder / "index.db"
        self._index = SearchIndex(self._path, JournalFile(journal.path))

    def build(self, rows: Iterable[EventRow]) -> None:
        for _ in rows:
            pass  # only the neighbours are needed, which the other stores share
        self._path.unlink(missing_ok=True)

    def build_index(self) -> None:
        asyncio.run(self._index.catch_up())

    def insert(self, row: EventRow) -> None:
        create(self._path)
        file = IndexFile(self._path)
        while advance(file, self._journal.source, Sizes(), thorough=False) != "done":
            pass
        file.close()

    def search(self, query: str) -> list[Place]:
        found = asyncio.run(self._index.recall(query))
        return [(one.session_id, one.n) for one in found]

    def bytes(self) -> int:
        return self._path.stat().st_size


class Terms(NamedTuple):
    """A clause as words: those that count in full, and near ones with their weight."""

    own: tuple[str, ...]
    near: tuple[tuple[str, float], ...]


def terms_of(clause: QueryClause) -> Terms:
    own = [clause.word, *(atom.text for atom, weight in clause.near if weight == 1)]
    near = [(atom.text, weight) for atom, weight in clause.near if weight < 1]
    return Terms(tuple(own), tuple(near[:8]))


class Engine:
    """A store that finds the rows of clauses by BM25; this class adds planning and ranking."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def frequency(self, clause: QueryClause, most: int) -> int:
        raise NotImplementedError

    def best(self, clauses: Sequence[QueryClause], *, newest: bool) -> list[int]:
        raise NotImplementedError

    def containing(self, clause: QueryClause) -> list[int]:
        """Rows with the word of the clause as a part of a word."""
        raise NotImplementedError

    def search(self, query: str) -> list[Place]:
        question = parse_question(query, NOW)
        clauses = [one for one in question.clauses if one.rule != "not"]
        total = len(self._journal.ids)
        most = int(total * COMMON_SHARE)
        counts = {clause: self.frequency(clause, most) for clause in clauses}
        telling = [c for c in clauses if counts[c] < most] or clauses
        rarest = sorted(telling, key=counts.__getitem__)[:MOST_RANKED_CLAUSES]
        while len(rarest) > 1 and sum(counts[c] for c in rarest) > MOST_RANKED_ROWS:
            rarest.pop()
        ids: list[int] = []
        if rarest and counts[rarest[0]]:
            newest = len(clauses) == 1 and counts[rarest[0]] > MOST_RANKED_ROWS
            ids = self.best(rarest, newest=newest)
        if len(clauses) == 1 and len(ids) < SESSIONS_SHOWN:
            ids = list(dict.fromkeys([*ids, *self.containing(clauses[0])]))
            telling = [wide for c in telling for wide in loosen(c)[:1] or [c]]
            counts |= {c: len(ids) for c in telling}
        found = self._rank(telling, [rarity(counts[c], total) for c in telling], ids, question.asks)
        return [(one.row.session_id, one.row.n) for one in found]

    def _rank(
        self,
        clauses: Sequence[QueryClause],
        rarities: Sequence[float],
        ids: Sequence[int],
        asks: Any,
    ) -> list[ScoredMessage]:
        near = {id: self._journal.neighbours(id) for id in ids}
        wanted = list(dict.fromkeys([*ids, *(one for some in near.values() for one in some)]))
        read = {row.id: message_of(row) for row in self._journal.source.fetch(wanted)}
        own = {id: _shares(clauses, rarities, message) for id, message in read.items()}
        shares = dict(own)
        for id, beside in near.items():
            for other in beside:
                if other in shares and id in own:
                    pairs = zip(shares[other], own[id], strict=True)
                    shares[other] = [max(left, NEIGHBOUR * right) for left, right in pairs]
        newest_at = max((one.row.at for one in read.values()), default=0.0)
        scorer = MessageScorer(clauses, rarities, newest_at, asks)
        scorer.hear(list(read.values()))
        judged = (
            scorer.judge(one, CandidateMessage(shares[id], own=any(own[id])))
            for id, one in read.items()
        )
        return sorted(with_sessions([one for one in judged if one]), key=order)


def _shares(
    clauses: Sequence[QueryClause], rarities: Sequence[float], message: Message
) -> list[float]:
    words = {stem(word) or word for word in terms(message.folded)}
    found = []
    for clause, worth in zip(clauses, rarities, strict=True):
        own, near = terms_of(clause)
        full = any((stem(word) or word) in words for word in own)
        part = max((weight for word, weight in near if word in words), default=0.0)
        found.append(worth * (1.0 if full else part))
    return found


class Fts5(Engine):
    name = "fts5"

    def __init__(self, folder: Path, journal: Journal) -> None:
        super().__init__(journal)
        self._path = folder / "fts5.db"
        self._path.unlink(missing_ok=True)
        self._db = sqlite3.connect(self._path)
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute(
            "CREATE VIRTUAL TABLE words USING fts5(text, content='',"
            " tokenize='porter unicode61 remove_diacritics 2')"
        )
        self._db.execute(
            "CREATE VIRTUAL TABLE parts USING fts5(text, content='', detail=none, columnsize=0,"
            " tokenize='trigram')"
        )

    def build(self, rows: Iterable[EventRow]) -> None:
        some: list[tuple[int, str]] = []
        for row in rows:
            if text := text_of(row):
                some.append((row.id, text))
            if len(some) == 10_000:
                self._add(some)
                some = []
        self._add(some)

    def insert(self, row: EventRow) -> None:
        self._add([(row.id, text_of(row))])

    def _add(self, some: list[tuple[int, str]]) -> None:
        self._db.executemany("INSERT INTO words(rowid, text) VALUES (?, ?)", some)
        self._db.executemany("INSERT INTO parts(rowid, text) VALUES (?, ?)", some)
        self._db.commit()

    def frequency(self, clause: QueryClause, most: int) -> int:
        sql = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
        (count,) = self._db.execute(sql, (_fts5(clause), most)).fetchone()
        return int(count)

    def best(self, clauses: Sequence[QueryClause], *, newest: bool) -> list[int]:
        by = "rowid DESC" if newest else "rank"
        sql = f"SELECT rowid FROM words WHERE words MATCH ? ORDER BY {by} LIMIT {CANDIDATES}"
        wanted = " OR ".join(map(_fts5, clauses))
        return [id for (id,) in self._db.execute(sql, (wanted,))]

    def containing(self, clause: QueryClause) -> list[int]:
        word = clause.word
        grams = dict.fromkeys(word[at : at + 3] for at in range(len(word) - 2))
        if not grams:
            return []
        wanted = " AND ".join('"' + gram.replace('"', '""') + '"' for gram in grams)
        sql = f"SELECT rowid FROM parts WHERE parts MATCH ? ORDER BY rowid DESC LIMIT {CANDIDATES}"
        return [id for (id,) in self._db.execute(sql, (wanted,))]

    def bytes(self) -> int:
        sizes = [
            self._db.execute(f"SELECT sum(length(block)) FROM {table}_data").fetchone()[0]
            for table in ("words", "parts")
        ]
        report("storage fts5 tables", words=sizes[0], parts=sizes[1])
        return self._path.stat().st_size


def _fts5(clause: QueryClause) -> str:
    own, near = terms_of(clause)
    star = "*" if clause.atoms[-1].how == "prefix" else ""
    quoted = ['"' + word.replace('"', " ") + '"' + star for word in own]
    return "(" + " OR ".join([*quoted, *(f'"{word}"' for word, _ in near)]) + ")"


class Tantivy(Engine):
    name = "tantivy"

    def __init__(self, folder: Path, journal: Journal) -> None:
        super().__init__(journal)
        tantivy: Any = import_module("tantivy")
        self._tantivy = tantivy
        self._folder = folder / "tantivy"
        self._folder.mkdir()
        builder = tantivy.SchemaBuilder()
        builder.add_integer_field("id", stored=True, fast=True)
        builder.add_text_field("text", tokenizer_name="en_stem")
        builder.add_text_field("parts", tokenizer_name="parts", index_option="basic")
        self._index = tantivy.Index(builder.build(), path=str(self._folder))
        grams = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.ngram(3, 3))
        self._index.register_tokenizer("parts", grams.filter(tantivy.Filter.lowercase()).build())
        self._writer = self._index.writer(heap_size=128_000_000, num_threads=1)
        self._searcher = self._index.searcher()

    def build(self, rows: Iterable[EventRow]) -> None:
        for row in rows:
            self._add(row)
        self._commit()

    def insert(self, row: EventRow) -> None:
        self._add(row)
        self._commit()

    def _add(self, row: EventRow) -> None:
        if text := text_of(row):
            self._writer.add_document(self._tantivy.Document(id=row.id, text=text, parts=text))

    def _commit(self) -> None:
        self._writer.commit()
        self._index.reload()
        self._searcher = self._index.searcher()

    def frequency(self, clause: QueryClause, most: int) -> int:
        return int(self._searcher.search(self._query([clause]), limit=1).count)

    def best(self, clauses: Sequence[QueryClause], *, newest: bool) -> list[int]:
        return self._ids(self._query(clauses), newest)

    def containing(self, clause: QueryClause) -> list[int]:
        word = clause.word
        grams = [word[at : at + 3] for at in range(len(word) - 2)]
        if not grams:
            return []
        wanted = " AND ".join(f'parts:"{gram}"' for gram in dict.fromkeys(grams))
        return self._ids(self._index.parse_query(wanted, ["parts"]), newest=True)

    def _query(self, clauses: Sequence[QueryClause]) -> Any:
        said = []
        for clause in clauses:
            own, near = terms_of(clause)
            prefix = "*" if clause.atoms[-1].how == "prefix" and " " in clause.word else ""
            said += ['"' + word.replace('"', " ") + '"' + prefix for word in own]
            said += [f'"{word}"^{weight}' for word, weight in near]
        return self._index.parse_query(" OR ".join(said), ["text"])

    def _ids(self, query: Any, newest: bool) -> list[int]:
        by = {"order_by_field": "id"} if newest else {}
        found = self._searcher.search(query, limit=CANDIDATES, **by).hits
        return [int(self._searcher.doc(address)["id"][0]) for _, address in found]

    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self._folder.iterdir())


def corpus(messages: int, sample: Sample, writer: Writer) -> Iterator[bytes]:
    """The dialogues, each session between filler sessions, at even distances."""
    some = [*chats.chats(), *dialogues.dialogues(), *friends.friends()]
    sessions: dict[str, list[bytes]] = {}
    for line in recall.lines(some, named=True):
        said = json.loads(line)
        sessions.setdefault(said["session"], []).append(line)
        sample.bytes += len(said["text"].encode())
    asked = iter(sessions.values())
    filler = max(1, (messages - sum(map(len, sessions.values()))) // FILLER_SESSION)
    every = max(1, filler // len(sessions))
    for number in range(filler):
        for place in range(FILLER_SESSION):
            text = writer.message()
            sample.take(number * FILLER_SESSION + place, text)
            at = 1_600_000_000 + (number * FILLER_SESSION + place) * 45
            yield line_of(f"s{number}", at, "assistant" if place % 2 else "user", text)
        if number % every == every - 1:
            yield from next(asked, ())
    for rest in asked:
        yield from rest


def vocabulary() -> list[str]:
    """The words of the dialogues, the most frequent first, so that fillers share them."""
    counts: Counter[str] = Counter()
    for dialogue in (*chats.chats(), *dialogues.dialogues(), *friends.friends()):
        for session in dialogue.sessions:
            for line in session.lines:
                counts.update(word for word in fold(line.text).split() if word.isalpha())
    return [word for word, _ in counts.most_common()]


def questions(chance: random.Random, count: int) -> list[Question]:
    some = [
        question
        for dialogue in (*chats.chats(), *dialogues.dialogues(), *friends.friends())
        for question in dialogue.questions
        if question.kind != "adversarial"
    ]
    return chance.sample(some, min(count, len(some)))


def spent(work: Callable[P, T], *args: P.args, **named: P.kwargs) -> tuple[float, T]:
    """CPU seconds, and the result."""
    begun = time.process_time()
    result = work(*args, **named)
    return time.process_time() - begun, result


def measure_recall(store: Store, asked: Sequence[Question]) -> dict[str, Any]:
    times, sessions, shown = [], 0.0, 0.0
    for question in asked:
        seconds, found = spent(store.search, question.text)
        times.append(seconds * 1000)
        evidence = {(id, number + recall.FIRST_MESSAGE) for id, number in question.evidence}
        wanted = {id for id, _ in evidence}
        first = list(dict.fromkeys(id for id, _ in found))[:SESSIONS_SHOWN]
        sessions += len(wanted & set(first)) / len(wanted)
        shown += len(evidence & set(found[:MESSAGES_SHOWN])) / len(evidence)
    count = len(asked)
    return {
        "session_in_5": round(100 * sessions / count, 1),
        "evidence_in_20": round(100 * shown / count, 1),
        "cpu_ms": quantiles(times),
    }


def measure_words(store: Store, kinds: dict[str, Callable[[], str]], each: int) -> dict[str, Any]:
    """By kind of query: CPU time, and in how many per cent of the searches anything is found."""
    found: dict[str, Any] = {}
    every: list[float] = []
    for kind, make in kinds.items():
        times, hits = [], 0
        for _ in range(each):
            seconds, places = spent(store.search, make())
            times.append(seconds * 1000)
            hits += bool(places)
        every += times
        found[kind] = {"p95": quantiles(times)["p95"], "answered": round(100 * hits / each)}
    return {"all": quantiles(every), **found}


def measure(store: Store, journal: Journal, options: argparse.Namespace, sample: Sample) -> None:
    chance = random.Random(options.seed)
    journal.ids, journal.sessions = [], []
    build, _ = spent(store.build, journal.rows())
    if isinstance(store, Ours):
        build, _ = spent(store.build_index)
    size = store.bytes()
    asked = questions(chance, options.questions)
    store.search(asked[0].text)  # loads modules and opens files
    writer = Writer(random.Random(options.seed), 20_000, vocabulary())
    sample.reseed(chance)
    kinds = queries(sample, writer, chance)
    kinds.pop("nothing")
    facts = {
        "messages": len(journal.ids),
        "text_bytes": sample.bytes,
        "bytes": size,
        "size_ratio": round(size / sample.bytes, 2),
        "build_cpu_seconds": round(build, 1),
        "questions": measure_recall(store, asked),
        "words_cpu_ms": measure_words(store, kinds, options.queries),
        "insert_cpu_ms": measure_inserts(store, journal),
    }
    report(f"storage {store.name}", **facts)


def measure_inserts(store: Store, journal: Journal) -> float:
    """The mean of single inserts, each visible to the next search."""
    seconds = 0.0
    for number in range(INSERTS):
        line = line_of(f"new-{store.name}", NOW, "user", f"A new message about topic {number}.")
        asyncio.run(_import(journal.path, [line]))
        (row,) = journal.source.rows(journal.ids[-1], 1)[-1:]
        journal.ids.append(row.id)
        journal.sessions.append(-1)
        cpu, _ = spent(store.insert, row)
        seconds += cpu
    return round(1000 * seconds / INSERTS, 2)


async def _import(path: Path, said: Iterable[bytes]) -> None:
    journal = SqliteJournal(path, World())
    await import_lines(journal, said)
    await journal.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=30_000)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--queries", type=int, default=10, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="keep the files here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        chance = random.Random(options.seed)
        sample = Sample(chance, every=max(1, options.messages // 5_000))
        words = 20_000 + options.messages // 4
        writer = Writer(chance, min(200_000, words), vocabulary())
        journal = Journal(folder / "hermes.db")
        asyncio.run(_import(journal.path, corpus(options.messages, sample, writer)))
        measure(Ours(folder, journal), journal, options, sample)
        measure(Fts5(folder, journal), journal, options, sample)
        if find_spec("tantivy"):
            measure(Tantivy(folder, journal), journal, options, sample)


if __name__ == "__main__":
    main()
