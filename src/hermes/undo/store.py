"""Stores earlier contents, and tracks which sessions are open."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hermes.codec.file_lock import FileLock
from hermes.core.errors import HermesError, NotFound
from hermes.undo.entry import (
    Manifest,
    copy_content,
    digest,
    open_file,
    pack_manifest,
    unpack_manifest,
)

log = logging.getLogger(__name__)

SCHEMA = """
-- squeezed: 0 not looked at yet, 1 compressed, 2 better left as it is.
CREATE TABLE IF NOT EXISTS blobs(
    token BLOB PRIMARY KEY, size INTEGER NOT NULL, squeezed INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS objects(token BLOB PRIMARY KEY, size INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS manifests(
    token BLOB PRIMARY KEY, root TEXT NOT NULL, at REAL NOT NULL, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS roots(
    root TEXT PRIMARY KEY, manifest BLOB NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS calls(
    id INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, turn TEXT NOT NULL,
    root TEXT NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL, words TEXT NOT NULL,
    state TEXT NOT NULL, process TEXT NOT NULL, manifest BLOB, body BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS calls_of_session ON calls(session, id);
CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value NOT NULL);
PRAGMA user_version = 1;
"""
BUSY_SECONDS = 30.0


class StoreError(HermesError):
    """The checkpoint store failed."""


class CheckpointStore:
    """The database and files with earlier contents. It is shared by sessions and processes, and
    thread-safe."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.objects = folder / "objects"
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None

    @property
    def exists(self) -> bool:
        return (self.folder / "store.db").exists()

    def close(self) -> None:
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def prepare(self) -> None:
        """Create the folders."""
        with self.reading():
            pass

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _explain_errors():
            yield self._open()

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open one write transaction."""
        with self._lock, _explain_errors():
            db = self._open()
            if db.in_transaction:
                yield db
                return
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            for folder in (self.folder, self.objects):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = self.folder / "store.db"
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            db = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            # No need to wait for the disk while there is nothing to lose.
            db.execute("PRAGMA synchronous = OFF")
            db.execute("PRAGMA page_size = 16384")
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")
            db.execute("PRAGMA journal_mode = WAL")
            if db.execute("PRAGMA user_version").fetchone()[0] == 0:
                db.executescript(SCHEMA)
            db.execute("PRAGMA synchronous = NORMAL")
            self._db = db
        return self._db

    def put(self, blobs: Iterable[tuple[bytes, bytes]]) -> None:
        rows = ((token, len(data), 0, data) for token, data in blobs)
        with self.writing() as db:
            db.executemany("INSERT OR IGNORE INTO blobs VALUES(?,?,?,?)", rows)

    def put_object(self, token: bytes, size: int) -> None:
        with self.writing() as db:
            db.execute("INSERT OR IGNORE INTO objects VALUES(?,?)", (token, size))

    def object_path(self, token: bytes) -> Path:
        name = token[:1].decode() + token[1:].hex()
        return self.objects / name

    def temporary(self) -> Path:
        return self.objects / f".new-{os.getpid()}-{threading.get_ident()}-{os.urandom(4).hex()}"

    def holds(self, tokens: Sequence[bytes]) -> set[bytes]:
        """Return the tokens whose content is stored."""
        found: set[bytes] = set()
        with self.reading() as db:
            for start in range(0, len(tokens), 500):
                part = tokens[start : start + 500]
                marks = ",".join("?" * len(part))
                for table in ("blobs", "objects"):
                    query = f"SELECT token FROM {table} WHERE token IN ({marks})"
                    found.update(row[0] for row in db.execute(query, part))
        return found

    def data(self, token: bytes) -> bytes | None:
        """Return small content; None when it is a separate object."""
        with self.reading() as db:
            row = db.execute(
                "SELECT squeezed, data FROM blobs WHERE token = ?", (token,)
            ).fetchone()
        if row is None:
            return None
        return zlib.decompress(row[1]) if row[0] == 1 else bytes(row[1])

    def write_to(self, token: bytes, descriptor: int, size: int) -> None:
        """Write stored content into an open file that is empty or will be truncated."""
        data = self.data(token)
        if data is not None:
            os.ftruncate(descriptor, 0)
            written = 0
            while written < len(data):
                written += os.pwrite(descriptor, data[written:], written)
            return
        try:
            with open_file(self.object_path(token)) as source:
                copy_content(source, descriptor, size)
        except FileNotFoundError as error:
            raise NotFound("This content is no longer in the store.") from error

    def total(self) -> int:
        """Return the bytes used in all."""
        with self.reading() as db:
            pages = db.execute("PRAGMA page_count").fetchone()[0]
            pages -= db.execute("PRAGMA freelist_count").fetchone()[0]
            size = db.execute("PRAGMA page_size").fetchone()[0]
            large = db.execute("SELECT COALESCE(SUM(size), 0) FROM objects").fetchone()[0]
        return int(pages * size + large)

    def save_manifest(self, root: str, manifest: Manifest, at: float) -> bytes:
        """Return its token. The newest manifest of a root tells the next process what is already
        stored."""
        raw = pack_manifest(manifest)
        token = digest(raw)
        root = path_text(root)
        with self.writing() as db:
            held = db.execute("SELECT 1 FROM manifests WHERE token = ?", (token,)).fetchone()
            if not held:
                row = (token, root, at, raw)
                db.execute("INSERT INTO manifests VALUES(?,?,?,?)", row)
            db.execute("INSERT OR REPLACE INTO roots VALUES(?,?,?)", (root, token, at))
            db.execute(
                "DELETE FROM manifests WHERE root = ? AND token != ? AND token NOT IN"
                " (SELECT manifest FROM calls WHERE state = 'open' AND manifest IS NOT NULL)",
                (root, token),
            )
        return token

    def manifest(self, token: bytes) -> Manifest | None:
        raw = self._first("SELECT data FROM manifests WHERE token = ?", token)
        return unpack_manifest(raw) if raw else None

    def has_manifest(self, token: bytes) -> bool:
        return bool(self._first("SELECT 1 FROM manifests WHERE token = ?", token))

    def newest_manifest(self, root: str) -> Manifest | None:
        token = self._first("SELECT manifest FROM roots WHERE root = ?", path_text(root))
        return self.manifest(token) if token else None

    def generation(self) -> int:
        """Return a number that grows whenever contents are removed."""
        return int(self._first("SELECT value FROM meta WHERE key = 'generation'") or 0)

    def count_removal(self, db: sqlite3.Connection) -> None:
        """Start a new generation, so that other processes check what they know."""
        db.execute(
            "INSERT INTO meta VALUES('generation', 1)"
            " ON CONFLICT(key) DO UPDATE SET value = value + 1"
        )

    def _first(self, query: str, *values: object) -> Any:
        with self.reading() as db:
            row = db.execute(query, values).fetchone()
        return row[0] if row else None

    def discard_object(self, token: bytes) -> None:
        path = self.object_path(token)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def path_text(name: str) -> str:
    """Convert a name that may not be UTF-8."""
    return name.encode("utf-8", "backslashreplace").decode()


@contextlib.contextmanager
def _explain_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(
            f"The checkpoint store cannot be used ({error}); check the disk."
        ) from error


def lock_session(store: CheckpointStore, session: str) -> FileLock | None:
    """Mark the session as open here until the lock is closed; None when another process has it
    open."""
    store.prepare()
    lock = FileLock(store.folder / "live" / (session.replace("/", "_") or "_"))
    if lock.acquire(timeout=0):
        return lock
    lock.close()
    return None


def open_sessions(store: CheckpointStore) -> set[str]:
    """Return the sessions that are open in some process, and remove stale files."""
    found = set()
    folder = store.folder / "live"
    for path in folder.iterdir() if folder.is_dir() else ():
        lock = FileLock(path)
        with contextlib.suppress(OSError):
            if lock.acquire(timeout=0):
                lock.remove()
            else:
                found.add(path.name)
        lock.close()
    return found
