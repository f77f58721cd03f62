"""Removes erased text from the databases and files of a home."""

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
    """Asks SQLite, since opening and closing the file directly would drop SQLite's locks."""
    try:
        with _open(path, "ro") as db:
            db.execute("PRAGMA schema_version").fetchone()
    except sqlite3.DatabaseError as error:
        return error.sqlite_errorcode != sqlite3.SQLITE_NOTADB
    return True


def clean_tables(
    path: Path, remove_phrases: Callable[[str], str], *, write: bool = True
) -> tuple[int, list[str]]:
    """Returns the number of changed rows, and leftovers. A row whose key contains the text is
    deleted. Without `write`, it only searches."""
    with _open(path, "rw" if write else "ro") as db:
        tables = list(_tables(db))
        if not any(_find(db, *table, remove_phrases) for table in tables):
            return 0, []
        if not write:
            return 0, [f"{path} also contains it"]
        db.execute("PRAGMA secure_delete = ON")
        db.execute("BEGIN IMMEDIATE")
        # Search again: other processes may have written meanwhile.
        count = sum(_clean(db, *table, remove_phrases) for table in tables)
        db.execute("COMMIT")
        return count, [
            *_virtual_tables(path, db),
            *([] if scrub_database(db) else [describe_leftover(path)]),
        ]


def _open(path: Path, mode: str) -> closing[sqlite3.Connection]:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return closing(sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None))


def _tables(db: sqlite3.Connection) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yields name, key columns and all columns of each table and full-text index."""
    found = db.execute("PRAGMA main.table_list").fetchall()
    for _schema, name, kind, _columns, is_without_rowid, _strict in found:
        if kind not in ("table", "virtual") or name.startswith("sqlite_"):
            continue
        info = db.execute("SELECT name, pk FROM pragma_table_info(?)", (name,)).fetchall()
        key = [column for column, pk in info if pk] if is_without_rowid else ["rowid"]
        yield name, key, [column for column, _pk in info]


def _find(
    db: sqlite3.Connection,
    name: str,
    key: Sequence[str],
    columns: Sequence[str],
    remove_phrases: Callable[[str], str],
) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Returns the keys of affected rows with their new values."""
    query = f"SELECT {_column_list((*key, *columns))} FROM {_quote(name)}"
    rows = []
    for row in db.execute(query):
        values = zip(columns, row[len(key) :], strict=True)
        new = {
            column: cleaned
            for column, old in values
            if (cleaned := _without(old, remove_phrases)) != old
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
    for row_key, new in rows:
        wanted = ", ".join(f"{_quote(column)} = ?" for column in new)
        try:
            update = f"UPDATE {_quote(name)} SET {wanted} WHERE {where}"
            db.execute(update, (*new.values(), *row_key))
        except sqlite3.IntegrityError:
            db.execute(f"DELETE FROM {_quote(name)} WHERE {where}", row_key)
    return len(rows)


def _without(value: Any, remove_phrases: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return remove_phrases(value)
    if isinstance(value, bytes):
        return remove_phrases(value.decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        )
    return value


def _virtual_tables(path: Path, db: sqlite3.Connection) -> list[str]:
    found = db.execute("PRAGMA main.table_list").fetchall()
    names = sorted(name for _schema, name, kind, *_ in found if kind == "virtual")
    return [f"{path} has a virtual table, {name}, that may still contain words" for name in names]


def _column_list(columns: Sequence[str]) -> str:
    return ", ".join(map(_quote, columns))


def _quote(name: str) -> str:
    """Quotes an identifier. A quoted `rowid` works where no column has that name."""
    return '"' + name.replace('"', '""') + '"'


RemovePhrases: TypeAlias = Callable[[str], str]

MAX_BYTES = 64 << 20
DATABASE = ".db"
# Their packages clean these themselves.
_HANDLED_ELSEWHERE = ("hermes.db", "index.db", "memories/ledger.db", "memories/people.db")
# SQLite cleans these together with their databases.
_SQLITE_SIDE_FILES = (".db-wal", ".db-shm", ".db-journal", ".lock")
# Model files are large and contain no user text.
_SKIPPED_FOLDERS = ("models", "profiles", "locks", "checkpoints", "confined")
# Editing credentials could break logins; the user must remove the text.
_READ_ONLY = (".env", "auth.json")
# The database of another program; it is only searched.
_OTHER_PROGRAM = "state.db"


def sweep(root: Path, remove_phrases: RemovePhrases) -> tuple[list[str], list[str]]:
    """Cleans every file that no package handles. Returns the changed files, and leftovers."""
    changed: list[str] = []
    left: list[str] = []
    for path in _files(root):
        try:
            if path.suffix == DATABASE and is_database(path):
                rows, leftovers = clean_tables(
                    path, remove_phrases, write=path.name != _OTHER_PROGRAM
                )
                changed += [str(path)] if rows else []
                left += leftovers
            elif path.stat().st_size > MAX_BYTES:
                left.append(f"{path} is too large to search")
            elif path.name.endswith(".gz"):
                changed += [str(path)] if _clean_packed(path, remove_phrases) else []
            elif path.name in _READ_ONLY:
                left += (
                    [f"{path} also contains it"]
                    if _clean_bytes(path.read_bytes(), remove_phrases)
                    else []
                )
            elif (cleaned := _clean_bytes(path.read_bytes(), remove_phrases)) is not None:
                _overwrite(path, cleaned)
                changed.append(str(path))
        except (OSError, EOFError, zlib.error, sqlite3.Error) as error:
            left.append(f"{path} cannot be searched ({error})")
    return changed, left


def _files(root: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name not in _SKIPPED_FOLDERS]
        for name in names:
            path = Path(folder, name)
            if (
                name.endswith(_SQLITE_SIDE_FILES)
                or path.relative_to(root).as_posix() in _HANDLED_ELSEWHERE
            ):
                continue
            if path.is_file() and not path.is_symlink():
                yield path


def _clean_bytes(raw: bytes, remove_phrases: RemovePhrases) -> bytes | None:
    """Returns the bytes without the text; None when they do not contain it."""
    text = raw.decode("utf-8", "surrogateescape")
    cleaned = remove_phrases(text)
    return None if cleaned == text else cleaned.encode("utf-8", "surrogateescape")


def _clean_packed(path: Path, remove_phrases: RemovePhrases) -> bool:
    cleaned = _clean_bytes(gzip.decompress(path.read_bytes()), remove_phrases)
    if cleaned is None:
        return False
    _overwrite(path, gzip.compress(cleaned, mtime=0))
    return True


def _overwrite(path: Path, data: bytes) -> None:
    """Overwrites in place, since another process may have the file open for appending."""
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
