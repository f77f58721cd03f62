"""The index file: numbered blocks with checksums in SQLite, and a manifest of all of them.

The manifest determines every block that must exist, so damage is noticed when a block is read;
damage elsewhere has no effect.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value

FORMAT = f"3 {sys.byteorder}"
_MANIFEST_KEY = 0
_SETTINGS = (
    # A merged segment stays in memory until its commit, so that readers only wait for that.
    "PRAGMA cache_size = -24576",
    "PRAGMA secure_delete = ON",
    "PRAGMA cell_size_check = ON",
    # Checksums reveal what a power cut damaged; it is rebuilt from the journal.
    "PRAGMA synchronous = OFF",
)
_CREATION = (
    "PRAGMA page_size = 4096",
    "PRAGMA auto_vacuum = INCREMENTAL",
    "CREATE TABLE IF NOT EXISTS blocks(key INTEGER PRIMARY KEY, data BLOB)",
)
_SPARE_PART = 64
_BUSY_SECONDS = 5.0
_KINDS = {"root": 0, "terms": 1, "docs": 2, "places": 3}
_KIND_BITS, _PART_BITS = 2, 20
_OUT_OF_REACH = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_NOMEM,
}

BlockKind = Literal["root", "terms", "docs", "places"]


class IndexDamaged(Exception):
    """The file cannot be trusted and must be rebuilt. Never leaves this package."""


class IndexUnavailable(Exception):
    """The file cannot be used now, though it may be valid. Never leaves this package."""


class JournalPosition(Value):
    """One event of the journal, which identifies the journal that the index was made from."""

    id: int
    session_id: str
    n: int


class SegmentInfo(Value):
    """A segment of the index: messages in the order of their ids."""

    number: int
    docs: int  # the number of messages
    leaves: int
    oldest: int  # in whole seconds, like `newest`
    newest: int
    last: JournalPosition  # the last message
    closed: bool = False  # it is not merged again, and its words are in the word lists


class WordList(Value):
    number: int
    blocks: int


class IndexManifest(Value):
    """The contents of the file, oldest segment first. `seen` is the last event that was read."""

    format: str
    next_number: int
    seen: JournalPosition | None
    segments: tuple[SegmentInfo, ...]
    words: tuple[WordList, ...] = ()


EMPTY = IndexManifest(format=FORMAT, next_number=1, seen=None, segments=())


class IndexFile:
    """An open file, used and closed by one thread. Raises IndexDamaged and IndexUnavailable."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._translate_errors():
            self._db = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=rw",
                uri=True,
                timeout=_BUSY_SECONDS,
                isolation_level=None,
            )
            try:
                for statement in _SETTINGS:
                    self._db.execute(statement)
                if self._db.execute("PRAGMA page_count").fetchone() == (0,):
                    for statement in _CREATION:
                        self._db.execute(statement)
            except BaseException:
                self._db.close()
                raise

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold a consistent state of the file, whatever others write meanwhile."""
        self._execute("BEGIN")
        try:
            yield
        finally:
            if self._db.in_transaction:
                self._execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write everything that is written inside, or nothing."""
        self._execute("BEGIN IMMEDIATE")
        try:
            yield
            self._execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._execute("ROLLBACK")

    def _execute(self, sql: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
        with self._translate_errors():
            return self._db.execute(sql, values)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._describe_error(error) from error
        except UnicodeDecodeError as error:
            # SQLite quotes bytes of the damaged file, which may not be text.
            raise IndexDamaged("the schema cannot be read") from error

    def _describe_error(self, error: sqlite3.Error) -> IndexDamaged | IndexUnavailable:
        kind = IndexUnavailable if self._is_out_of_reach(error) else IndexDamaged
        return kind(str(error))

    def _is_out_of_reach(self, error: sqlite3.Error) -> bool:
        extended = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
        code = extended & 0xFF
        if code == sqlite3.SQLITE_IOERR:
            # A quota or file size limit is reported as a failed write.
            return extended not in (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ)
        if code == sqlite3.SQLITE_READONLY:
            # SQLite also refuses to write files that claim a newer version.
            return not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK))
        return code in _OUT_OF_REACH

    def manifest(self) -> IndexManifest:
        with self._translate_errors():
            if self._db.execute("SELECT 1 FROM blocks LIMIT 1").fetchone() is None:
                return EMPTY
            try:
                manifest = decode(IndexManifest, self._block(_MANIFEST_KEY))
            except DecodeError as error:
                raise IndexDamaged("the manifest cannot be decoded") from error
        if manifest.format != FORMAT:
            raise IndexDamaged("the file has another format")
        return manifest

    def put_manifest(self, manifest: IndexManifest) -> None:
        self._put(_MANIFEST_KEY, encode(manifest))

    def block(self, segment: int, kind: BlockKind, part: int) -> bytes:
        # A search does this hundreds of times; a context manager for each would be too slow.
        try:
            return self._block(_key(segment, kind, part))
        except sqlite3.Error as error:
            raise self._describe_error(error) from error

    def blocks(self, segment: int, kind: BlockKind, first: int, end: int) -> Iterator[bytes]:
        """Yield neighbouring blocks of a kind, in order."""
        expected, last = _key(segment, kind, first), _key(segment, kind, end) - 1
        sql = "SELECT key, data FROM blocks WHERE key BETWEEN ? AND ? ORDER BY key"
        with self._translate_errors():
            for key, data in self._db.execute(sql, (expected, last)):
                if key != expected:
                    break
                yield _unseal(key, data)
                expected += 1
        if expected <= last:
            raise IndexDamaged("a block is missing")

    def put(self, segment: int, kind: BlockKind, part: int, data: bytes) -> None:
        self._put(_key(segment, kind, part), data)

    def drop(self, segments: Sequence[int]) -> None:
        for number in segments:
            span = (_key(number, "root", 0), _key(number + 1, "root", 0) - 1)
            self._execute("DELETE FROM blocks WHERE key BETWEEN ? AND ?", span)

    def shrink(self) -> None:
        """Free the space of old segments when it is a large part of the file."""
        with self._translate_errors():
            (free,) = self._db.execute("PRAGMA freelist_count").fetchone()
            (pages,) = self._db.execute("PRAGMA page_count").fetchone()
            if free * _SPARE_PART > pages:
                # `execute` would run one step of this, which frees one page.
                self._db.executescript("PRAGMA incremental_vacuum")

    def problems(self) -> list[str]:
        """Return the problems that SQLite itself finds."""
        with self._translate_errors():
            found = [str(row[0]) for row in self._db.execute("PRAGMA integrity_check(20)")]
        return [] if found == ["ok"] else found

    def _block(self, key: int) -> bytes:
        row = self._db.execute("SELECT data FROM blocks WHERE key = ?", (key,)).fetchone()
        if row is None:
            raise IndexDamaged("a block is missing")
        return _unseal(key, row[0])

    def _put(self, key: int, data: bytes) -> None:
        sealed = zlib.crc32(data, key & 0xFFFFFFFF).to_bytes(4, "little") + data
        self._execute("INSERT OR REPLACE INTO blocks VALUES (?, ?)", (key, sealed))


def create(path: Path) -> None:
    """Create an empty file that only its owner can read, unless one exists."""
    if path.exists():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise IndexUnavailable(f"{path} cannot be created: {error.strerror}") from error


def discard(path: Path) -> None:
    """Remove the file and SQLite's files beside it."""
    try:
        for suffix in ("", "-journal", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    except OSError as error:
        raise IndexUnavailable(f"{path} cannot be removed: {error.strerror}") from error


def _key(segment: int, kind: BlockKind, part: int) -> int:
    return (segment << _KIND_BITS | _KINDS[kind]) << _PART_BITS | part


def _unseal(key: int, sealed: object) -> bytes:
    if not isinstance(sealed, bytes) or len(sealed) < 4:
        raise IndexDamaged("a block has an invalid type")
    data = sealed[4:]
    if zlib.crc32(data, key & 0xFFFFFFFF) != int.from_bytes(sealed[:4], "little"):
        raise IndexDamaged("a checksum is wrong")
    return data
