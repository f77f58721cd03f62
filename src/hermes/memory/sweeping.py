"""Takes words out of all files of a home that no room looks after, databases among them."""

from __future__ import annotations

import gzip
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from hermes.memory.tables import clean_tables, is_database

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
                left += [f"{path} says it too"] if _clean(path.read_bytes(), remove_phrases) else []
            elif (rest := _clean(path.read_bytes(), remove_phrases)) is not None:
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


def _clean(raw: bytes, remove_phrases: Erased) -> bytes | None:
    """The bytes without it; None when it is not there."""
    text = raw.decode("utf-8", "surrogateescape")
    rest = remove_phrases(text)
    return None if rest == text else rest.encode("utf-8", "surrogateescape")


def _clean_packed(path: Path, remove_phrases: Erased) -> bool:
    rest = _clean(gzip.decompress(path.read_bytes()), remove_phrases)
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
