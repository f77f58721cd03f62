"""Removes forgotten text from databases and files of a home."""

from __future__ import annotations

import gzip
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

from hermes.core.scrub import describe_leftover, scrub_database

BUSY_SECONDS = 10.0


def is_database(path: Path) -> bool:
    """Asked of SQLite: opening its files by other means would drop the locks that it holds."""
    try:
        with _open(path, "ro") as db:
            db.execute("PRAGMA schema_version").fetchone()
    except sqlite3.DatabaseError as error:
        return error.sqlite_errorcode != sqlite3.SQLITE_NOTADB
    return True


def clean_tables(
    path: Path, remove_phrases: Callable[[str], str], *, touch: bool = True
) -> tuple[int, list[str]]:
    """How many rows were changed, and what may still have it. A row whose key says it goes. Without
    `touch` it is only looked for."""
    with _open(path, "rw" if touch else "ro") as db:
        tables = list(_tables(db))
        if not any(_find(db, *table, remove_phrases) for table in tables):
            return 0, []
        if not touch:
            return 0, [f"{path} says it too"]
        db.execute("PRAGMA secure_delete = ON")
        db.execute("BEGIN IMMEDIATE")
        # Looked for once more, since others may have written meanwhile.
        count = sum(_clean(db, *table, remove_phrases) for table in tables)
        db.execute("COMMIT")
        return count, [
            *_closed_databases(path, db),
            *([] if scrub_database(db) else [describe_leftover(path)]),
        ]


def _open(path: Path, mode: str) -> closing[sqlite3.Connection]:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return closing(sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None))


def _tables(db: sqlite3.Connection) -> Iterator[tuple[str, list[str], list[str]]]:
    """Name, columns of the key, and all columns of each table and index of words."""
    found = db.execute("PRAGMA main.table_list").fetchall()
    for _schema, name, kind, _columns, is_without_rowid, _strict in found:
        if kind not in ("table", "virtual") or name.startswith("sqlite_"):
            continue
        info = db.execute("SELECT name, pk FROM pragma_table_info(?)", (name,)).fetchall()
        key = [column for column, place in info if place] if is_without_rowid else ["rowid"]
        yield name, key, [column for column, _place in info]


def _find(
    db: sqlite3.Connection,
    name: str,
    key: Sequence[str],
    columns: Sequence[str],
    remove_phrases: Callable[[str], str],
) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The keys of rows that have it, with the values that they are to have instead."""
    query = f"SELECT {_list_tables((*key, *columns))} FROM {_quote(name)}"
    rows = []
    for row in db.execute(query):
        values = zip(columns, row[len(key) :], strict=True)
        new = {
            column: rest for column, old in values if (rest := _without(old, remove_phrases)) != old
        }
        if new:
            rows.append((row[: len(key)], new))
    return rows


def _clean(
    db: sqlite3.Connection,
    name: str,
    key: Sequence[str],
    columns: Sequence[str],
    remove_phrases: Callable[[str], str],
) -> int:
    where = " AND ".join(f"{_quote(column)} IS ?" for column in key)
    rows = _find(db, name, key, columns, remove_phrases)
    for place, new in rows:
        wanted = ", ".join(f"{_quote(column)} = ?" for column in new)
        try:
            update = f"UPDATE {_quote(name)} SET {wanted} WHERE {where}"
            db.execute(update, (*new.values(), *place))
        except sqlite3.IntegrityError:
            db.execute(f"DELETE FROM {_quote(name)} WHERE {where}", place)
    return len(rows)


def _without(value: Any, remove_phrases: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return remove_phrases(value)
    if isinstance(value, bytes):
        return remove_phrases(value.decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        )
    return value


def _closed_databases(path: Path, db: sqlite3.Connection) -> list[str]:
    found = db.execute("PRAGMA main.table_list").fetchall()
    names = sorted(name for _schema, name, kind, *_ in found if kind == "virtual")
    return [f"{path} has an index of its own, {name}, that may still know words" for name in names]


def _list_tables(columns: Sequence[str]) -> str:
    return ", ".join(map(_quote, columns))


def _quote(name: str) -> str:
    """A name as SQLite takes any name; `rowid` is one too where no column is called so."""
    return '"' + name.replace('"', '""') + '"'


Erased: TypeAlias = Callable[[str], str]

MOST_BYTES = 64 << 20
DATABASE = ".db"
# Their rooms have taken it out, with all that follows from it.
_LOOKED_AFTER = ("hermes.db", "index.db", "memories/ledger.db", "memories/people.db")
# What SQLite has beside its files is gone or clean when they are.
_BESIDE = (".db-wal", ".db-shm", ".db-journal", ".lock")
# Models are large and say nothing.
_NOT_ENTERED = ("models", "profiles", "locks", "checkpoints", "confined")
# Without these nobody gets in any more; who wrote it there has to take it out.
_NOT_TOUCHED = (".env", "auth.json")
# Another program's; it is only read.
_FOREIGN = "state.db"


def sweep(root: Path, remove_phrases: Erased) -> tuple[list[str], list[str]]:
    """Every file that nobody else looks after: those that were changed, and what is left."""
    changed: list[str] = []
    left: list[str] = []
    for path in _files(root):
        try:
            if path.suffix == DATABASE and is_database(path):
                rows, remarks = clean_tables(path, remove_phrases, touch=path.name != _FOREIGN)
                changed += [str(path)] if rows else []
                left += remarks
            elif path.stat().st_size > MOST_BYTES:
                left.append(f"{path} is too large to be looked into")
            elif path.name.endswith(".gz"):
                changed += [str(path)] if _clean_packed(path, remove_phrases) else []
            elif path.name in _NOT_TOUCHED:
                left += (
                    [f"{path} says it too"]
                    if _sweeping_clean(path.read_bytes(), remove_phrases)
                    else []
                )
            elif (rest := _sweeping_clean(path.read_bytes(), remove_phrases)) is not None:
                _overwrite(path, rest)
                changed.append(str(path))
        except (OSError, EOFError, zlib.error, sqlite3.Error) as error:
            left.append(f"{path} cannot be looked into ({error})")
    return changed, left


def _files(root: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name not in _NOT_ENTERED]
        for name in names:
            path = Path(folder, name)
            if name.endswith(_BESIDE) or path.relative_to(root).as_posix() in _LOOKED_AFTER:
                continue
            if path.is_file() and not path.is_symlink():
                yield path


def _sweeping_clean(raw: bytes, remove_phrases: Erased) -> bytes | None:
    """The bytes without it; None when it is not there."""
    text = raw.decode("utf-8", "surrogateescape")
    rest = remove_phrases(text)
    return None if rest == text else rest.encode("utf-8", "surrogateescape")


def _clean_packed(path: Path, remove_phrases: Erased) -> bool:
    rest = _sweeping_clean(gzip.decompress(path.read_bytes()), remove_phrases)
    if rest is None:
        return False
    _overwrite(path, gzip.compress(rest, mtime=0))
    return True


def _overwrite(path: Path, data: bytes) -> None:
    """In place, since another process may have the file open to write at its end."""
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
