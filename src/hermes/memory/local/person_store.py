"""Stores a person's card, conclusions and messages in one SQLite file."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from hermes.core.scrub import scrub_database

T = TypeVar("T")

SCHEMA = """
CREATE TABLE IF NOT EXISTS facts(
    id INTEGER PRIMARY KEY AUTOINCREMENT, person TEXT NOT NULL, kind TEXT NOT NULL,
    text TEXT NOT NULL, session TEXT NOT NULL, at REAL NOT NULL, UNIQUE(person, kind, text));
CREATE TABLE IF NOT EXISTS said(
    id INTEGER PRIMARY KEY AUTOINCREMENT, person TEXT NOT NULL, session TEXT NOT NULL,
    role TEXT NOT NULL, text TEXT NOT NULL, at REAL NOT NULL);
"""
MOST_SAID = 2_000
LONGEST_SAID = 4_000
BUSY_SECONDS = 30.0
_SMALL = frozenset("the and for with that this from are was you your what who how does".split())


Kind = Literal["card", "conclusion"]


class PersonStore:
    """Safe across processes; opened on first use."""

    def __init__(self, path: Path, person: str) -> None:
        self.path = path
        self._person = person
        self._db: sqlite3.Connection | None = None
        self._turn = threading.Lock()

    async def add_facts(self, kind: Kind, lines: Sequence[str], *, session: str, at: float) -> None:
        """Adds conclusions, or replaces the card, which has the facts that the person set."""
        rows = [(self._person, kind, line, session, at) for line in lines]

        def work(db: sqlite3.Connection) -> None:
            if kind == "card":
                db.execute("DELETE FROM facts WHERE person = ? AND kind = 'card'", (self._person,))
            db.executemany(
                "INSERT OR IGNORE INTO facts(person, kind, text, session, at)"
                " VALUES (?, ?, ?, ?, ?)",
                rows,
            )

        await self._run(work)

    async def facts(self, kind: Kind) -> list[str]:
        """Oldest first."""
        query = "SELECT text FROM facts WHERE person = ? AND kind = ? ORDER BY id"
        if not self.path.exists():
            return []
        return await self._run(lambda db: [t for (t,) in db.execute(query, (self._person, kind))])

    async def add_messages(
        self, said: Sequence[tuple[str, str]], *, session: str, at: float
    ) -> None:
        """Stores messages; only the newest MOST_SAID are kept."""

        def work(db: sqlite3.Connection) -> None:
            rows = [(self._person, session, role, t[:LONGEST_SAID], at) for role, t in said if t]
            db.executemany(
                "INSERT INTO said(person, session, role, text, at) VALUES (?, ?, ?, ?, ?)", rows
            )
            oldest = "SELECT id FROM said WHERE person = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2"
            db.execute(
                f"DELETE FROM said WHERE person = ?1 AND id <= ({oldest})",
                (self._person, MOST_SAID),
            )

        await self._run(work)

    async def search(self, query: str, limit: int) -> list[str]:
        """Returns facts, then messages, that share words with the query, best first."""
        wanted = keywords(query)
        if not wanted or not self.path.exists():
            return []
        newest = "SELECT role, text FROM said WHERE person = ? ORDER BY id DESC"
        rows = await self._run(lambda db: db.execute(newest, (self._person,)).fetchall())
        said = [f"{role} said: {text}" for role, text in rows]
        facts = await self.facts("conclusion")
        ranked = sorted(
            ((2.0 if place < len(facts) else 1.0) * len(wanted & keywords(text)), -place, text)
            for place, text in enumerate((*facts, *said))
            if wanted & keywords(text)
        )
        return [text for _, _, text in reversed(ranked)][:limit]

    async def forget(self, remove_phrases: Callable[[str], str]) -> bool:
        """Deletes rows that contain a phrase; returns whether no deleted text remains on disk."""

        def work(db: sqlite3.Connection) -> None:
            for table in ("facts", "said"):
                rows = db.execute(f"SELECT id, text FROM {table}").fetchall()
                gone = [(id,) for id, text in rows if remove_phrases(text) != text]
                db.executemany(f"DELETE FROM {table} WHERE id = ?", gone)

        if not self.path.exists():
            return True
        await self._run(work)
        return await self._run(scrub_database, plain=True)

    def close(self) -> None:
        with self._turn:
            if self._db is not None:
                self._db.close()
                self._db = None

    async def _run(self, work: Callable[[sqlite3.Connection], T], *, plain: bool = False) -> T:
        """Runs `work` in a transaction, or without one if `plain`."""

        def run() -> T:
            with self._turn:
                db = self._open_db()
                if plain:
                    return work(db)
                db.execute("BEGIN IMMEDIATE")
                try:
                    result = work(db)
                    db.execute("COMMIT")
                    return result
                except BaseException:
                    db.execute("ROLLBACK")
                    raise

        return await asyncio.to_thread(run)

    def _open_db(self) -> sqlite3.Connection:
        if self._db is None:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            db = sqlite3.connect(
                self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA secure_delete = ON")
            db.executescript(SCHEMA)
            self._db = db
        return self._db


def keywords(text: str) -> frozenset[str]:
    words = re.findall(r"\w+", text.casefold())
    return frozenset(word for word in words if len(word) > 2 and word not in _SMALL)
