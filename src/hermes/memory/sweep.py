"""Removes erased text from the databases and files of a home."""

from __future__ import annotations

import gzip
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

from hermes.core.scrub import describe_leftover, scrub_database

RemovePhrases: TypeAlias = Callable[[str], str]

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
    path: Path, remove_phrases: RemovePhrases, *, write: bool = True
) -> tuple[int, list[str]]:
    """Returns the number of changed rows, and leftovers. A row whose key contains the text is
    deleted. Without `write`, it only searches."""
    with _open(path, "rw" if write else "ro") as db:
        if not any(_find(db, remove_phrases)):
            return 0, []
        if not write:
            return 0, [f"{path} also contains it"]
        db.execute("PRAGMA secure_delete = ON")
        db.execute("BEGIN IMMEDIATE")
        # Search again: other processes may have written meanwhile.
        found = list(_find(db, remove_phrases))
        for table, key, new in found:
            where = " AND ".join(f"{column} IS ?" for column in key)
            wanted = ", ".join(f"{column} = ?" for column in new)
            try:
                update = f"UPDATE {table} SET {wanted} WHERE {where}"
                db.execute(update, (*new.values(), *key.values()))
            except sqlite3.IntegrityError:
                db.execute(f"DELETE FROM {table} WHERE {where}", tuple(key.values()))
        db.execute("COMMIT")
        tables = db.execute("PRAGMA main.table_list").fetchall()
        left = [
            f"{path} has a virtual table, {name}, that may still contain words"
            for name in sorted(name for _schema, name, kind, *_ in tables if kind == "virtual")
        ]
        left += [] if scrub_database(db) else [describe_leftover(path)]
        return len(found), left


def _open(path: Path, mode: str) -> closing[sqlite3.Connection]:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return closing(sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None))


def _find(
    db: sqlite3.Connection, remove_phrases: RemovePhrases
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yields table, key and new values of each row with the text, in all tables and full-text
    indexes."""
    tables = db.execute("PRAGMA main.table_list").fetchall()
    for _schema, name, kind, _columns, is_without_rowid, _strict in tables:
        if kind not in ("table", "virtual") or name.startswith("sqlite_"):
            continue
        info = db.execute("SELECT name, pk FROM pragma_table_info(?)", (name,)).fetchall()
        columns = [_quote(column) for column, _pk in info]
        key = [_quote(column) for column, pk in info if pk] if is_without_rowid else ['"rowid"']
        for row in db.execute(f"SELECT {', '.join((*key, *columns))} FROM {_quote(name)}"):
            new: dict[str, Any] = {}
            for column, old in zip(columns, row[len(key) :], strict=True):
                if isinstance(old, str) and (text := remove_phrases(old)) != old:
                    new[column] = text
                elif isinstance(old, bytes) and (raw := _clean_bytes(old, remove_phrases)):
                    new[column] = raw
            if new:
                yield _quote(name), dict(zip(key, row, strict=False)), new


def _quote(name: str) -> str:
    """Quotes an identifier. A quoted `rowid` works where no column has that name."""
    return '"' + name.replace('"', '""') + '"'


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
                is_ours = path.name != _OTHER_PROGRAM
                rows, leftovers = clean_tables(path, remove_phrases, write=is_ours)
                changed += [str(path)] if rows else []
                left += leftovers
                continue
            if path.stat().st_size > MAX_BYTES:
                left.append(f"{path} is too large to search")
                continue
            is_packed, raw = path.name.endswith(".gz"), path.read_bytes()
            cleaned = _clean_bytes(gzip.decompress(raw) if is_packed else raw, remove_phrases)
            if cleaned is None:
                continue
            if path.name in _READ_ONLY:
                left.append(f"{path} also contains it")
                continue
            # In place, since another process may have the file open for appending.
            with path.open("r+b") as file:
                file.write(gzip.compress(cleaned, mtime=0) if is_packed else cleaned)
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
            changed.append(str(path))
        except (OSError, EOFError, zlib.error, sqlite3.Error) as error:
            left.append(f"{path} cannot be searched ({error})")
    return changed, left


def _files(root: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name not in _SKIPPED_FOLDERS]
        for name in names:
            path = Path(folder, name)
            is_handled = path.relative_to(root).as_posix() in _HANDLED_ELSEWHERE
            if is_handled or name.endswith(_SQLITE_SIDE_FILES) or path.is_symlink():
                continue
            if path.is_file():
                yield path


def _clean_bytes(raw: bytes, remove_phrases: RemovePhrases) -> bytes | None:
    """Returns the bytes without the text; None when they do not contain it."""
    text = raw.decode("utf-8", "surrogateescape")
    cleaned = remove_phrases(text)
    return None if cleaned == text else cleaned.encode("utf-8", "surrogateescape")
