"""Where the index reads the journal: a small protocol, and the plainest way to fulfil it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from hermes.journal.index.texts import KINDS, Row

_COLUMNS = "e.id, s.id, e.n, e.kind, e.at, e.body FROM events e JOIN sessions s USING (session)"
_IDS_AT_ONCE = 500


class Source(Protocol):
    """Called in worker threads, never in two of them at once; between searches it is closed, and
    the next call opens it again."""

    def exists(self) -> bool:
        """Whether there is a journal at all."""
        ...

    def rows(self, after_id: int, limit: int) -> list[Row]:
        """The next rows of `KINDS` with a greater id, in the order of ids."""
        ...

    def fetch(self, ids: Sequence[int]) -> list[Row]:
        """Those of the rows that exist, in any order."""
        ...

    def close(self) -> None: ...


class JournalFile:
    """The journal's SQLite file, read only."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def exists(self) -> bool:
        return self._path.exists()

    def rows(self, after_id: int, limit: int) -> list[Row]:
        kinds = ", ".join("?" * len(KINDS))
        sql = f"SELECT {_COLUMNS} WHERE e.id > ? AND e.kind IN ({kinds}) ORDER BY e.id LIMIT ?"
        return self._all(sql, (after_id, *KINDS, limit))

    def fetch(self, ids: Sequence[int]) -> list[Row]:
        found: list[Row] = []
        for start in range(0, len(ids), _IDS_AT_ONCE):
            some = ids[start : start + _IDS_AT_ONCE]
            sql = f"SELECT {_COLUMNS} WHERE e.id IN ({', '.join('?' * len(some))})"
            found += self._all(sql, tuple(some))
        return found

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _all(self, sql: str, values: tuple[object, ...]) -> list[Row]:
        if self._connection is None:
            self._connection = sqlite3.connect(
                f"{self._path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False
            )
        return [Row._make(row) for row in self._connection.execute(sql, values)]
