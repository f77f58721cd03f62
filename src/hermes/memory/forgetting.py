"""Erases text from all files of a home: journal, memory, recordings, checkpoints and others."""

from __future__ import annotations

import asyncio
import gzip
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hermes.codec.values import Value
from hermes.config.home import TAPES
from hermes.core.errors import NotFound, UsageError
from hermes.core.events import Steered, TurnStarted
from hermes.core.scrub import PATIENCE_SECONDS, describe_leftover, scrub_database
from hermes.journal.erasure import Erasure, Mentions, erase, find_affected
from hermes.memory.entries import OWNER
from hermes.memory.memories import ForgetPlan
from hermes.memory.phrases import Phrases

if TYPE_CHECKING:
    from hermes.config.home import Home
    from hermes.journal.archive import SessionArchive
    from hermes.memory.service import MemoryService

MIN_CHARS = 4
_IN_WAL = (
    "{} may still have it on old pages because another program is reading the file; they are "
    "removed at the next start of Hermes after that program has ended"
)


class ForgetReport(Value):
    """What was erased."""

    texts: int
    entries: tuple[int, ...] = ()
    sessions: tuple[str, ...] = ()
    records: int = 0
    files: tuple[str, ...] = ()
    recordings: int = 0
    contents: int = 0
    # Files that still contain the text or cannot be searched.
    left: tuple[str, ...] = ()


async def plan_forget(
    memory: MemoryService, reference: str, also: Sequence[str] = ()
) -> ForgetPlan:
    """Plan what to erase: an entry by number or text with all its versions, or any text. Raises
    UsageError for texts that are too short, NotFound for unknown entries."""
    memories = memory.of()
    try:
        plan = await memories.plan_forget(entry=await memories.resolve_entry(reference))
    except NotFound as error:
        if error.near or reference.strip().removeprefix("m").isdecimal():
            raise
        plan = await memories.plan_forget(text=reference)
    more = [await memories.plan_forget(text=text) for text in also]
    merged = ForgetPlan(
        texts=tuple(dict.fromkeys(text for each in (plan, *more) for text in each.texts)),
        changes=tuple(dict.fromkeys(n for each in (plan, *more) for n in each.changes)),
        sources=tuple(dict.fromkeys(s for each in (plan, *more) for s in each.sources)),
    )
    if not merged.texts:
        raise NotFound("All texts of this entry are already erased.")
    if any(len(text.strip()) < MIN_CHARS for text in merged.texts):
        raise UsageError(
            f"Fewer than {MIN_CHARS} characters match too many places; use a longer text."
        )
    return merged


async def find_traces(
    memory: MemoryService, archive: SessionArchive, plan: ForgetPlan
) -> dict[str, tuple[int, ...]]:
    """Return the records that contain the texts, by session."""
    if not memory.run.home.journal.exists():
        return {}
    return await find_affected(
        memory.journal, Phrases(plan.texts), near=await _near(memory, archive, plan)
    )


async def forget(
    memory: MemoryService,
    archive: SessionArchive,
    plan: ForgetPlan,
    *,
    patience_seconds: float = PATIENCE_SECONDS,
) -> ForgetReport:
    """Erase the texts everywhere. Raises SessionBusy and changes nothing when an affected session
    is in use. Safe to repeat after an interruption."""
    home, phrases = memory.run.home, Phrases(plan.texts)
    near = await _near(memory, archive, plan)
    done = Erasure()
    if home.journal.exists():
        done = await erase(
            memory.journal, phrases, near=near, by=OWNER, patience_seconds=patience_seconds
        )
    left = [] if done.is_wiped else [_IN_WAL.format(home.journal)]
    memories = memory.of()
    entries = {each.entry for each in await memories.changes() if each.id in plan.changes}
    for scope in sorted(await memories.holders(plan) | {OWNER}):
        await memory.of(scope).forget(plan)
    if not await memories.scrub(patience_seconds=patience_seconds):
        left.append(describe_leftover(home.memories / "ledger.db"))
    if home.index.exists():
        await archive.rebuild_index()
    recordings = await asyncio.to_thread(_drop_recordings, home, tuple(done.sessions))
    contents, leftovers = await asyncio.to_thread(_drop_contents, home, phrases)
    left += leftovers
    files, leftovers = await asyncio.to_thread(sweep, home.root, phrases.remove_phrases)
    left += leftovers
    left += await memory.forget_outside(phrases.remove_phrases)
    return ForgetReport(
        texts=len(plan.texts),
        entries=tuple(sorted(entries)),
        sessions=tuple(done.sessions),
        records=sum(map(len, done.sessions.values())),
        files=tuple(files),
        recordings=recordings,
        contents=contents,
        left=tuple(left),
    )


async def _near(
    memory: MemoryService, archive: SessionArchive, plan: ForgetPlan
) -> dict[str, Mentions]:
    """Return where the texts were mentioned: the messages and their turns, also in the ancestors of
    forks."""
    mentions: dict[str, Mentions] = {}
    for source in plan.sources:
        if not source.session_id:
            continue
        turns, records = {source.turn_id} - {""}, {source.n} - {0}
        with suppress(NotFound):
            for record in await memory.journal.read(source.session_id):
                event = record.event
                if record.turn_id == source.turn_id and isinstance(event, TurnStarted | Steered):
                    records.update(event.takes)
        ancestors: tuple[str, ...] = ()
        with suppress(NotFound):
            ancestors = (await archive.lineage(source.session_id)).ancestors
        for session_id in (source.session_id, *ancestors):
            before = mentions.get(session_id, Mentions())
            mentions[session_id] = Mentions(
                turns=before.turns | turns, records=before.records | records
            )
    return mentions


def _drop_recordings(home: Home, sessions: Sequence[str]) -> int:
    """Delete tapes, which store requests as differences and answers in chunks. Without its tape a
    session is replayed from the records only."""
    tapes = [tape for each in sessions for tape in (home.sessions / each / TAPES).glob("*")]
    for tape in tapes:
        tape.unlink()
    return len(tapes)


def _drop_contents(home: Home, phrases: Phrases) -> tuple[int, list[str]]:
    """Erase file contents from the checkpoints; return their number, and leftovers."""
    from hermes.undo.retention import erase_contents
    from hermes.undo.store import CheckpointStore

    folder = home.root / "checkpoints"
    with closing(CheckpointStore(folder)) as store:
        count, is_wiped = erase_contents(store, phrases.remove_phrases)
    return count, [] if is_wiped else [describe_leftover(folder)]


RemovePhrases: TypeAlias = Callable[[str], str]

BUSY_SECONDS = 10.0


def is_database(path: Path) -> bool:
    """Return whether SQLite can read the file. Opening and closing it directly would drop SQLite's
    locks."""
    try:
        with _open(path, "ro") as db:
            db.execute("PRAGMA schema_version").fetchone()
    except sqlite3.DatabaseError as error:
        return error.sqlite_errorcode != sqlite3.SQLITE_NOTADB
    return True


def clean_tables(
    path: Path, remove_phrases: RemovePhrases, *, write: bool = True
) -> tuple[int, list[str]]:
    """Remove the text from a database; return the number of changed rows, and leftovers. A row
    whose key contains the text is deleted. Without `write`, the function only searches."""
    with _open(path, "rw" if write else "ro") as db:
        if not any(_find(db, remove_phrases)):
            return 0, []
        if not write:
            return 0, [f"{path} also contains it"]
        db.execute("PRAGMA secure_delete = ON")
        db.execute("BEGIN IMMEDIATE")
        # Search again: other processes may have written meanwhile.
        rows = list(_find(db, remove_phrases))
        for table, key, new in rows:
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
        return len(rows), left


def _open(path: Path, mode: str) -> closing[sqlite3.Connection]:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return closing(sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None))


def _find(
    db: sqlite3.Connection, remove_phrases: RemovePhrases
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield table, key and new values of each row with the text, in all tables and full-text
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
    """Quote an identifier. A quoted `rowid` works where no column has that name."""
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
    """Clean every file that no package handles. Return the changed files, and leftovers."""
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
    """Return the bytes without the text; None when they do not contain it."""
    text = raw.decode("utf-8", "surrogateescape")
    cleaned = remove_phrases(text)
    return None if cleaned == text else cleaned.encode("utf-8", "surrogateescape")
