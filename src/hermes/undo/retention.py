"""Removes contents from the store: too old, too much, or erased by the user."""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Callable, Iterable
from itertools import groupby

from hermes.codec.values import Value
from hermes.core.scrub import scrub_database
from hermes.undo.calls import CallLog, FileChange, RecordedCall
from hermes.undo.coverage import Retention
from hermes.undo.store import CheckpointStore, open_sessions

# Larger objects are not texts of a conversation.
MOST_BYTES = 64 << 20


def erase_contents(
    store: CheckpointStore, remove_phrases: Callable[[str], str]
) -> tuple[int, bool]:
    """Drop every content that `erased` would change. Return how many, and whether no page of the
    store contains them afterwards (see `wiped`). They can no longer be restored."""
    if not store.exists:
        return 0, True
    doomed = [*_small(store, remove_phrases), *_large(store, remove_phrases)]
    with store.writing() as db:
        db.execute("PRAGMA secure_delete = ON")
        db.executemany("DELETE FROM blobs WHERE token = ?", [(token,) for token in doomed])
        db.executemany("DELETE FROM objects WHERE token = ?", [(token,) for token in doomed])
        for id, words in db.execute("SELECT id, words FROM calls").fetchall():
            if (rest := remove_phrases(words)) != words:
                db.execute("UPDATE calls SET words = ? WHERE id = ?", (rest, id))
        if doomed:
            db.execute(
                "INSERT INTO meta VALUES('generation', 1)"
                " ON CONFLICT(key) DO UPDATE SET value = value + 1"
            )
    for token in doomed:
        store.discard_object(token)
    with store.reading() as db:
        is_wiped = scrub_database(db)
    return len(doomed), is_wiped


def _small(store: CheckpointStore, remove_phrases: Callable[[str], str]) -> list[bytes]:
    with store.reading() as db:
        rows = db.execute("SELECT token, squeezed, data FROM blobs")
        return [
            bytes(token)
            for token, squeezed, data in rows
            if _holds(zlib.decompress(data) if squeezed == 1 else bytes(data), remove_phrases)
        ]


def _large(store: CheckpointStore, remove_phrases: Callable[[str], str]) -> list[bytes]:
    with store.reading() as db:
        rows = db.execute("SELECT token FROM objects WHERE size <= ?", (MOST_BYTES,)).fetchall()
    found: list[bytes] = []
    for (token,) in rows:
        path = store.object_path(token)
        if path.is_file() and not path.is_symlink() and _holds(path.read_bytes(), remove_phrases):
            found.append(bytes(token))
    return found


def _holds(data: bytes, remove_phrases: Callable[[str], str]) -> bool:
    text = data.decode("utf-8", "replace")
    return remove_phrases(text) != text


DAY = 86_400.0
# Files on their way into the store have no row yet.
UNCLAIMED_SECONDS = 3_600
SQUEEZED_AT_ONCE = 2_000
WORTH_SQUEEZING = 512


class PruneResult(Value):
    """How many turns and bytes were removed, and what stays."""

    turns: int = 0
    bytes: int = 0
    total_bytes: int = 0


Group = tuple[str, str, str]


def prune(store: CheckpointStore, retention: Retention, now: float) -> PruneResult:
    """Drop turns by number, age and size, then every unreferenced content."""
    if not store.exists:
        return PruneResult()
    before = store.total()
    turns = _drop_turns(store, retention, now)
    sweep(store)
    compress(store)
    while store.total() > retention.max_total_bytes and _drop_oldest(store):
        turns += 1
        sweep(store)
    after = store.total()
    return PruneResult(turns=turns, bytes=max(0, before - after), total_bytes=after)


def prune_if_due(store: CheckpointStore, retention: Retention, now: float, hours: float) -> None:
    """Prune at most once in this many hours, for all processes together."""
    with store.writing() as db:
        row = db.execute("SELECT value FROM meta WHERE key = 'pruned_at'").fetchone()
        if row is not None and now - float(row[0]) < hours * 3_600:
            return
        db.execute("INSERT OR REPLACE INTO meta VALUES('pruned_at', ?)", (now,))
    prune(store, retention, now)


def free_space(store: CheckpointStore, retention: Retention, needed: int, now: float) -> None:
    """Free this many bytes, if removing old turns can do that."""
    prune(store, retention, now)
    while store.total() + needed > retention.max_total_bytes and _drop_oldest(store):
        sweep(store)


def clear(store: CheckpointStore) -> PruneResult:
    """Remove everything except what open sessions need."""
    if not store.exists:
        return PruneResult()
    before = store.total()
    alive = open_sessions(store)
    calls = CallLog(store)
    gone = [call for call in calls.all() if call.session not in alive]
    with store.writing() as db:
        calls.drop(call.id for call in gone)
        if not alive:
            db.execute("DELETE FROM roots")
    sweep(store, grace_seconds=0 if not alive else UNCLAIMED_SECONDS)
    after = store.total()
    turns = len({(call.session, call.turn) for call in gone})
    return PruneResult(turns=turns, bytes=max(0, before - after), total_bytes=after)


def _groups(store: CheckpointStore) -> list[tuple[Group, list[RecordedCall]]]:
    """Return the calls of each turn, ordered by the start of the turn."""
    calls = sorted(CallLog(store).all(), key=_group)
    grouped = [(key, list(members)) for key, members in groupby(calls, key=_group)]
    return sorted(grouped, key=lambda pair: pair[1][0].id)


def _group(call: RecordedCall) -> Group:
    return (call.root, call.session, call.turn or f"#{call.id}")


def _drop_turns(store: CheckpointStore, retention: Retention, now: float) -> int:
    groups = _groups(store)
    newest = _newest_of_sessions(groups)
    alive = open_sessions(store)
    count: dict[str, int] = {}
    gone = []
    for key, calls in reversed(groups):
        count[key[0]] = count.get(key[0], 0) + 1
        if key in newest and key[1] in alive:
            continue
        old = now - calls[-1].at > retention.retention_days * DAY
        if old or count[key[0]] > retention.max_snapshots:
            gone.append(calls)
    CallLog(store).drop(call.id for calls in gone for call in calls)
    return len(gone)


def _drop_oldest(store: CheckpointStore) -> bool:
    """Drop one turn; never the newest of an open session, nor the newest of all."""
    groups = _groups(store)
    newest = _newest_of_sessions(groups)
    alive = open_sessions(store)
    for key, calls in groups[:-1]:
        if key not in newest or key[1] not in alive:
            CallLog(store).drop(call.id for call in calls)
            return True
    return _drop_idle_manifest(store)


def _drop_idle_manifest(store: CheckpointStore) -> bool:
    """Drop copies of a project without recorded calls and open sessions."""
    alive = open_sessions(store)
    with store.writing() as db:
        kept = {row[0] for row in db.execute("SELECT DISTINCT root FROM calls")}
        idle = [r[0] for r in db.execute("SELECT root FROM roots ORDER BY at") if r[0] not in kept]
        if alive or not idle:
            return False
        db.execute("DELETE FROM roots WHERE root = ?", (idle[0],))
    return True


def _newest_of_sessions(groups: Iterable[tuple[Group, list[RecordedCall]]]) -> set[Group]:
    newest: dict[str, Group] = {}
    for key, _ in groups:
        newest[key[1]] = key
    return set(newest.values())


def sweep(store: CheckpointStore, *, grace_seconds: float = UNCLAIMED_SECONDS) -> None:
    """Remove every content that no call and no newest manifest refers to."""
    with store.writing() as db:
        db.execute(
            "DELETE FROM manifests WHERE token NOT IN (SELECT manifest FROM roots) AND token NOT IN"
            " (SELECT manifest FROM calls WHERE state = 'open' AND manifest IS NOT NULL)"
        )
        used = _used_tokens(store, db)
        gone = [r[0] for r in db.execute("SELECT token FROM blobs") if r[0] not in used]
        large = [r[0] for r in db.execute("SELECT token FROM objects") if r[0] not in used]
        db.executemany("DELETE FROM blobs WHERE token = ?", [(each,) for each in gone])
        db.executemany("DELETE FROM objects WHERE token = ?", [(each,) for each in large])
        if gone or large:
            db.execute(
                "INSERT INTO meta VALUES('generation', 1)"
                " ON CONFLICT(key) DO UPDATE SET value = value + 1"
            )
    for token in large:
        store.discard_object(token)
    _sweep_files(store, grace_seconds)
    with store.reading() as db:
        if not db.in_transaction:
            db.execute("PRAGMA incremental_vacuum").fetchall()
            db.execute("PRAGMA wal_checkpoint(PASSIVE)")


def _used_tokens(store: CheckpointStore, db: sqlite3.Connection) -> set[bytes]:
    used: set[bytes] = set()
    for (token,) in db.execute("SELECT token FROM manifests").fetchall():
        manifest = store.manifest(token) or {}
        used.update(entry.token for entry in manifest.values() if entry.token)
    for call in CallLog(store).all():
        used.update(token for change in call.changes for token in tokens_of(change))
        used.update(token for _, token in call.body.guards)
    return used


def tokens_of(change: FileChange) -> list[bytes]:
    entries = (change.before, change.after)
    return [entry.token for entry in entries if entry is not None and entry.token]


def _sweep_files(store: CheckpointStore, grace_seconds: float) -> None:
    """Remove files without a row that a dead process left."""
    with store.reading() as db:
        held = {row[0] for row in db.execute("SELECT token FROM objects")}
        for call in CallLog(store).all():
            held.update(token for _, token in call.body.guards)
    names = {store.object_path(token).name for token in held}
    newest = store.folder / "store.db-wal"
    clock = max((p.stat().st_mtime for p in (store.folder, newest) if p.exists()), default=0.0)
    for path in store.objects.iterdir() if store.objects.is_dir() else ():
        if path.name in names:
            continue
        with contextlib.suppress(OSError):
            if clock - path.lstat().st_ctime >= grace_seconds:
                path.unlink()


def compress(store: CheckpointStore, most: int = SQUEEZED_AT_ONCE) -> int:
    """Compress contents where it helps; return the bytes saved."""
    won = 0
    with store.writing() as db:
        rows = db.execute(
            "SELECT token, data FROM blobs WHERE squeezed = 0 AND size >= ? LIMIT ?",
            (WORTH_SQUEEZING, most),
        ).fetchall()
        for token, data in rows:
            small = zlib.compress(data, 6)
            if len(small) < len(data) * 9 // 10:
                won += len(data) - len(small)
                values = (1, small, token)
                db.execute("UPDATE blobs SET squeezed = ?, data = ? WHERE token = ?", values)
            else:
                # Tried, and better left uncompressed.
                db.execute("UPDATE blobs SET squeezed = 2 WHERE token = ?", (token,))
    return won
