"""How big the search index gets and how long a search takes, on messages made for the purpose and
imported as anybody would.

Prints one JSON object. The floor is a bare FTS5 query for a rare word over the same messages.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from hermes.codec.json import encode
from hermes.core.world import World
from hermes.journal.import_ import import_lines
from hermes.journal.index.filters import NO_FILTERS, Filters
from hermes.journal.index.search import SearchIndex
from hermes.journal.index.source import JournalFile
from hermes.journal.journal import SqliteJournal

COMMON = """
the to of and a in is it you that for on with this as are be not have was can if or at from we
so my will an what by all do no there how but file about use run error would code like has which
they time when need test one your get make more up out should now just also then data new see
some server its name work into them please set here add line user only change first could other
any path list than does these message after why check function project where config build still
using same want before each start way number output key good page call look next right table
read write find version value log command query database search index session token deploy
release branch merge commit review issue problem fix update delete create open close send
receive request response client service report plan meeting note remember decide budget invoice
customer design draft
""".split()
GERMAN = """
der die und das nicht ich ist wir mit auf für eine den von haben sind auch noch kann wird Datei
Fehler Änderung Sitzung löschen prüfen über größer schließen Übersicht Schlüssel Straße
""".split()
RUSSIAN = """
и в не на что я с как это по но мы для файл ошибка сервер сообщение проверить удалить нужно
можно сделать база данных запрос ответ сессия журнал поиск
""".split()
SPANISH = """
el la de que y en los se por un para con no una su al archivo error cambio servidor está sesión
búsqueda también más aquí acción código número mañana
""".split()
SYLLABLES = """
ba be bi bo ca ce co da de di do fa fe fi fo ga ge go ha he hi ho la le li lo ma me mi mo na ne
ni no pa pe pi po ra re ri ro sa se si so ta te ti to va ve vi vo ter ing ment tion er ol an str
pro con ant est ist ock um
""".split()
EVERYDAY = (
    "What gift did the customer get for the wedding?",
    "When did we decide about the budget for the new server project?",
    "Which instrument does the client play in the band?",
    "How many people came to the meeting about the release?",
    "Where did the user travel for vacation?",
)
MESSAGES_PER_SESSION = 40
SECONDS_PER_MESSAGE = 45
BEGINNING = 1_700_000_000


class Writer:
    """Makes messages whose words are as unevenly frequent as those of people."""

    def __init__(
        self, chance: random.Random, vocabulary: int, frequent: Sequence[str] = ()
    ) -> None:
        self._chance = chance
        words = dict.fromkeys([*COMMON, *frequent])
        while len(words) < vocabulary:
            count = 2 + (len(words) > 2_000) + (chance.random() < 0.3)
            words["".join(chance.choices(SYLLABLES, k=count))] = None
        self.words = list(words)
        self._weights = list(accumulate(map(_weight, range(len(self.words)))))
        characters = [chr(code) for code in chance.sample(range(0x4E00, 0x9FA0), 2_500)]
        kana = [chr(code) for code in range(0x3042, 0x3094)]
        hangul = [chr(code) for code in chance.sample(range(0xAC00, 0xD7A0), 900)]
        self._chinese = self._dense_words(characters, 6_000)
        self._japanese = self._dense_words(kana + characters[:800], 6_000)
        self._korean = self._dense_words(hangul, 4_000)

    def _dense_words(self, characters: list[str], count: int) -> list[str]:
        return ["".join(self._chance.choices(characters, k=2)) for _ in range(count)]

    def message(self) -> str:
        kind = self._chance.random()
        length = max(3, int(self._chance.lognormvariate(3.48, 0.8)))
        if kind < 0.90:
            return self._english(length)
        if kind < 0.93:
            return self._dense(self._chinese, length, "，")
        if kind < 0.945:
            return self._dense(self._japanese, length, "、")
        if kind < 0.955:
            return self._dense(self._korean, length, " ")
        foreign = self._chance.choice((GERMAN, RUSSIAN, SPANISH))
        return " ".join(self._chance.choices(foreign, k=length)) + "."

    def _english(self, length: int) -> str:
        chance = self._chance
        words = chance.choices(self.words, cum_weights=self._weights, k=length)
        for place in range(length):
            dice = chance.random()
            if dice < 0.02:
                words[place] = self._identifier()
            elif dice < 0.10:
                words[place] += chance.choice((",", ".", ":", "?", ".\n"))
        words[0] = words[0].capitalize()
        if chance.random() < 0.02:
            words.append(chance.choice("🚀👍🎉✅"))
        return " ".join(words)

    def _identifier(self) -> str:
        chance = self._chance
        some = chance.choices(self.words, cum_weights=self._weights, k=3)
        match chance.randrange(6):
            case 0:
                return "_".join(some[:2])
            case 1:
                return f"src/{some[0]}/{some[1]}.py"
            case 2:
                return some[0] + some[1].capitalize()
            case 3:
                return f"{chance.getrandbits(32):08x}"
            case 4:
                return str(chance.randrange(100_000))
            case _:
                return ".".join(some)

    def _dense(self, words: list[str], length: int, stop: str) -> str:
        size = len(words)
        chosen = [words[int(size * self._chance.random() ** 3)] for _ in range(length)]
        return stop.join("".join(chosen[at : at + 5]) for at in range(0, length, 5))


def _weight(rank: int) -> float:
    """Zipf's law, with the steeper fall among rare words that large collections show."""
    return math.pow(rank + 2, -1.05) / (1 + rank / 10_000)


def lines(writer: Writer, messages: int, sample: Sample) -> Iterator[bytes]:
    """As `hermes sessions import` takes them."""
    for number in range(messages):
        at = BEGINNING + number * SECONDS_PER_MESSAGE
        session = f"s{number // MESSAGES_PER_SESSION}"
        text = writer.message()
        sample.take(number, text)
        role = "assistant" if number % 2 else "user"
        yield line_of(session, at, role, text)


def line_of(session: str, at: float, role: str, text: str) -> bytes:
    return encode({"session": session, "at": at, "role": role, "text": text}) + b"\n"


class Sample:
    """Some of the messages, to make queries of; `seconds` is what their import took."""

    def __init__(self, chance: random.Random, every: int) -> None:
        self._every = every
        self._chance = chance
        self.texts: list[str] = []
        self.bytes = 0
        self.seconds = 0.0

    def keep(self, path: Path) -> None:
        path.write_bytes(encode({"texts": self.texts, "bytes": self.bytes, "took": self.seconds}))

    def restore(self, path: Path) -> None:
        kept = json.loads(path.read_bytes())
        self.texts, self.bytes, self.seconds = kept["texts"], kept["bytes"], kept["took"]

    def reseed(self, chance: random.Random) -> None:
        """Make the same queries again."""
        self._chance = chance

    def take(self, number: int, text: str) -> None:
        self.bytes += len(text.encode())
        if number % self._every == 0:
            self.texts.append(text)

    def english(self) -> list[str]:
        while True:
            words = [word.strip(",.:?\n") for word in self._chance.choice(self.texts).split()]
            if len(words) > 8 and all(word.isascii() for word in words):
                return words

    def dense(self) -> str:
        while True:
            text = self._chance.choice(self.texts)
            if ord(text[0]) > 0x3000 and len(text) > 8:
                return text


def queries(sample: Sample, writer: Writer, chance: random.Random) -> dict[str, Callable[[], str]]:
    rank = {word: place for place, word in enumerate(writer.words)}

    def rare() -> str:
        return max(sample.english(), key=lambda w: rank.get(w.lower(), 0) if len(w) > 5 else 0)

    def piece(length: int) -> str:
        text = sample.dense()
        start = chance.randrange(len(text) - length)
        return text[start : start + length]

    def several(count: int) -> str:
        return " ".join(chance.sample(sample.english(), count))

    def phrase() -> str:
        words = sample.english()
        start = chance.randrange(len(words) - 3)
        together = " ".join(words[start : start + chance.choice((2, 3))])
        return f'"{together}"'

    def identifier() -> str:
        while True:
            for word in sample.english():
                if any(sign in word for sign in "_/."):
                    return word[: -1 - chance.randrange(3)]

    return {
        "common": lambda: chance.choice(COMMON[:120]),
        "rare": rare,
        "two words": lambda: several(2),
        "question": lambda: "what should we do about the " + several(3),
        "everyday question": lambda: chance.choice(EVERYDAY),
        "phrase": phrase,
        "prefix": lambda: rare()[:4] + "*",
        "substring": lambda: rare()[1:6],
        "identifier": identifier,
        "one character": lambda: piece(1),
        "two characters": lambda: piece(2),
        "four characters": lambda: piece(4),
        "nothing": lambda: "".join(chance.choices("qxzvkj", k=7)),
    }


def quantiles(milliseconds: list[float]) -> dict[str, float]:
    ordered = sorted(milliseconds)
    return {
        "p50": round(statistics.median(ordered), 2),
        "p95": round(ordered[max(0, int(len(ordered) * 0.95) - 1)], 2),
        "max": round(ordered[-1], 2),
    }


class Spent(NamedTuple):
    """Milliseconds by the clock and of the processor, and how many messages were found."""

    wall: float
    cpu: float
    hits: int


async def timed_search(index: SearchIndex, query: str, filters: Filters = NO_FILTERS) -> Spent:
    cpu, wall = time.process_time(), time.perf_counter()
    hits = await index.search(query, filters)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Spent(wall * 1_000, cpu * 1_000, len(hits))


def spent_by(some: Sequence[Spent]) -> dict[str, Any]:
    return quantiles([one.wall for one in some]) | {"cpu": quantiles([one.cpu for one in some])}


async def measure(
    index: SearchIndex, kinds: dict[str, Callable[[], str]], each: int
) -> dict[str, Any]:
    everything: list[Spent] = []
    found: dict[str, Any] = {}
    for name, make in kinds.items():
        some = [await timed_search(index, make()) for _ in range(each)]
        everything += some
        found[name] = spent_by(some) | {"hits": round(sum(one.hits for one in some) / each, 1)}
    return {"all": spent_by(everything), "classes": found}


async def measure_filters(index: SearchIndex, messages: int, each: int) -> dict[str, Any]:
    span = messages * SECONDS_PER_MESSAGE
    some = frozenset(f"s{number}" for number in range(0, messages // MESSAGES_PER_SESSION, 97))
    filters = {
        "one session": Filters(sessions=frozenset({"s0"})),
        "many sessions": Filters(sessions=some),
        "without many sessions": Filters(exclude=some),
        "role": Filters(roles=frozenset({"user"})),
        "time": Filters(since=BEGINNING + span * 0.3, until=BEGINNING + span * 0.31),
    }
    found = {}
    for name, filter in filters.items():
        found[name] = spent_by([await timed_search(index, word, filter) for word in COMMON[:each]])
    return found


async def measure_fresh(index: SearchIndex, journal: SqliteJournal, each: int) -> dict[str, Any]:
    """A search right after one new message."""
    some = []
    for number in range(each):
        line = line_of("fresh", BEGINNING * 2, "user", f"A fresh thought, number {number}")
        await import_lines(journal, [line])
        some.append(await timed_search(index, "fresh thought"))
    return spent_by(some)


def floor(folder: Path, journal: Path, words: list[str]) -> dict[str, Any]:
    """A bare FTS5 index of the same bodies, asked for rare words."""
    path = folder / "floor.db"
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    db.execute("PRAGMA synchronous = OFF")
    db.execute("CREATE VIRTUAL TABLE words USING fts5(body, content='', detail=none)")
    db.execute("ATTACH ? AS journal", (str(journal),))
    before = time.perf_counter()
    db.execute("INSERT INTO words(rowid, body) SELECT id, rest FROM journal.log")
    db.commit()
    spent = time.perf_counter() - before
    times = []
    for word in words:
        begun = time.perf_counter()
        sql = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT 10"
        db.execute(sql, (f'"{word}"',)).fetchall()
        times.append((time.perf_counter() - begun) * 1_000)
    db.close()
    return {"ms": quantiles(times), "bytes": path.stat().st_size, "build_seconds": round(spent, 1)}


async def run(folder: Path, messages: int, each: int, seed: int) -> dict[str, Any]:
    chance = random.Random(seed)
    writer = Writer(chance, min(200_000, 20_000 + messages // 4))
    sample = Sample(chance, every=max(1, messages // 5_000))
    path, file = folder / "hermes.db", folder / "index.db"
    journal = SqliteJournal(path, World())
    kept = folder / f"sample-{messages}-{seed}.json"
    if kept.exists():
        sample.restore(kept)
    else:
        begun = time.perf_counter()
        await import_lines(journal, lines(writer, messages, sample))
        sample.seconds = time.perf_counter() - begun
        sample.keep(kept)
    index = SearchIndex(file, JournalFile(path))
    begun, cpu = time.perf_counter(), time.process_time()
    await index.catch_up()
    spent, cpu = time.perf_counter() - begun, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kinds = queries(sample, writer, chance)
    result: dict[str, Any] = {
        "messages": messages,
        "text_bytes": sample.bytes,
        "store_bytes": path.stat().st_size,
        "index_bytes": file.stat().st_size,
        "store_ratio": round(path.stat().st_size / sample.bytes, 3),
        "index_ratio": round(file.stat().st_size / sample.bytes, 3),
        "import_seconds": round(sample.seconds, 1),
        "build_seconds": round(spent, 2),
        "build_cpu_seconds": round(cpu, 2),
        "messages_per_second": round(messages / spent),
        "peak_rss_mb": peak // 1024,
        "search_ms": await measure(index, kinds, each),
        "filters_ms": await measure_filters(index, messages, min(each, 20)),
        "fresh_ms": await measure_fresh(index, journal, min(each, 20)),
        "floor": floor(folder, path, [kinds["rare"]() for _ in range(each)]),
    }
    await journal.close()
    rare, bare = result["search_ms"]["classes"]["rare"]["p50"], result["floor"]["ms"]["p50"]
    result["rare_to_floor"] = round(rare / bare, 1)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--queries", type=int, default=40, help="of each class")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="keep the files here, and use those in it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        result = asyncio.run(run(folder, options.messages, options.queries, options.seed))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
