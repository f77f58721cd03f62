"""Removes contents from the store that are too old, too large in total, or erased by the user."""

from __future__ import annotations

import contextlib
import zlib
from collections import Counter
from collections.abc import Callable, Iterator

from hermes.codec.values import Value
from hermes.core.scrub import scrub_database
from hermes.undo.calls import CallLog, RecordedCall
from hermes.undo.scanner import UndoLimits
from hermes.undo.store import CheckpointStore, open_sessions

# Larger objects are not texts of a conversation.
MOST_BYTES = 64 << 20


def erase_contents(
    store: CheckpointStore, remove_phrases: Callable[[str], str]
) -> tuple[int, bool]:
    """Drop every content that `remove_phrases` would change. Return how many, and whether no page
    of the store contains them afterwards. They can no longer be restored."""
    if not store.exists:
        return 0, True
    doomed = []
    for token, data in _all_contents(store):
        text = data.decode("utf-8", "replace")
        if remove_phrases(text) != text:
            doomed.append(token)
    with store.writing() as db:
        db.execute("PRAGMA secure_delete = ON")
        db.executemany("DELETE FROM blobs WHERE token = ?", [(token,) for token in doomed])
        db.executemany("DELETE FROM objects WHERE token = ?", [(token,) for token in doomed])
        for id, words in db.execute("SELECT id, words FROM calls").fetchall():
            if (rest := remove_phrases(words)) != words:
                db.execute("UPDATE calls SET words = ? WHERE id = ?", (rest, id))
        if doomed:
            store.count_removal(db)
    for token in doomed:
        store.discard_object(token)
    with store.reading() as db:
        is_wiped = scrub_database(db)
    return len(doomed), is_wiped


def _all_contents(store: CheckpointStore) -> Iterator[tuple[bytes, bytes]]:
    with store.reading() as db:
        for token, squeezed, data in db.execute("SELECT token, squeezed, data FROM blobs"):
            yield bytes(token), zlib.decompress(data) if squeezed == 1 else bytes(data)
        rows = db.execute("SELECT token FROM objects WHERE size <= ?", (MOST_BYTES,)).fetchall()
    for (token,) in rows:
        path = store.object_path(token)
        if path.is_file() and not path.is_symlink():
            yield bytes(token), path.read_bytes()


DAY = 86_400.0
# Files on their way into the store have no row yet.
UNCLAIMED_SECONDS = 3_600
SQUEEZED_AT_ONCE = 2_000
WORTH_SQUEEZING = 512


class CheckpointPruneResult(Value):
    """How many turns and bytes were removed, and what stays."""

    turns: int = 0
    bytes: int = 0
    total_bytes: int = 0


def prune(
    store: CheckpointStore, limits: UndoLimits, now: float, *, needed: int = 0
) -> CheckpointPruneResult:
    """Drop turns by number, age and size, then every unreferenced content. Leave this many bytes
    free, if removing old turns can do that."""
    if not store.exists:
        return CheckpointPruneResult()
    before = store.total()
    turns = _drop_turns(store, limits, now)
    sweep(store)
    compress(store)
    while store.total() + needed > limits.max_total_bytes and _drop_oldest(store):
        turns += 1
        sweep(store)
    after = store.total()
    return CheckpointPruneResult(turns=turns, bytes=max(0, before - after), total_bytes=after)


def prune_if_due(store: CheckpointStore, limits: UndoLimits, now: float, hours: float) -> None:
    """Prune at most once in this many hours, for all processes together."""
    with store.writing() as db:
        row = db.execute("SELECT value FROM meta WHERE key = 'pruned_at'").fetchone()
        if row is not None and now - float(row[0]) < hours * 3_600:
            return
        db.execute("INSERT OR REPLACE INTO meta VALUES('pruned_at', ?)", (now,))
    prune(store, limits, now)


def clear(store: CheckpointStore) -> CheckpointPruneResult:
    """Remove everything except what open sessions need."""
    if not store.exists:
        return CheckpointPruneResult()
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
    return CheckpointPruneResult(turns=turns, bytes=max(0, before - after), total_bytes=after)


def _turns(store: CheckpointStore) -> list[tuple[list[RecordedCall], bool]]:
    """Return the calls of each turn, oldest turn first, and whether they may be dropped: the newest
    turn of an open session stays."""
    groups: dict[tuple[str, str, str], list[RecordedCall]] = {}
    for call in CallLog(store).all():
        groups.setdefault(call.group, []).append(call)
    newest = {calls[0].session: calls for calls in groups.values()}
    alive = open_sessions(store)
    return [
        (calls, calls[0].session not in alive or newest[calls[0].session] is not calls)
        for calls in groups.values()
    ]


def _drop_turns(store: CheckpointStore, limits: UndoLimits, now: float) -> int:
    count: Counter[str] = Counter()
    gone = []
    for calls, droppable in reversed(_turns(store)):
        root = calls[0].root
        count[root] += 1
        old = now - calls[-1].at > limits.retention_days * DAY
        if droppable and (old or count[root] > limits.max_snapshots):
            gone.append(calls)
    CallLog(store).drop(call.id for calls in gone for call in calls)
    return len(gone)


def _drop_oldest(store: CheckpointStore) -> bool:
    """Drop one turn; never the newest of an open session, nor the newest of all."""
    for calls, droppable in _turns(store)[:-1]:
        if droppable:
            CallLog(store).drop(call.id for call in calls)
            return True
    if open_sessions(store):
        return False
    # Copies of a project without recorded calls and open sessions.
    with store.writing() as db:
        query = "SELECT root FROM roots WHERE root NOT IN (SELECT root FROM calls) ORDER BY at"
        row = db.execute(query).fetchone()
        if row is not None:
            db.execute("DELETE FROM roots WHERE root = ?", row)
    return row is not None


def sweep(store: CheckpointStore, *, grace_seconds: float = UNCLAIMED_SECONDS) -> None:
    """Remove every content that no call and no newest manifest refers to."""
    with store.writing() as db:
        db.execute(
            "DELETE FROM manifests WHERE token NOT IN (SELECT manifest FROM roots) AND token NOT IN"
            " (SELECT manifest FROM calls WHERE state = 'open' AND manifest IS NOT NULL)"
        )
        used: set[bytes] = set()
        for (token,) in db.execute("SELECT token FROM manifests").fetchall():
            manifest = store.manifest(token) or {}
            used.update(entry.token for entry in manifest.values() if entry.token)
        for call in CallLog(store).all():
            entries = (each for change in call.changes for each in (change.before, change.after))
            used.update(entry.token for entry in entries if entry is not None)
            used.update(token for _, token in call.body.guards)
        gone = [r[0] for r in db.execute("SELECT token FROM blobs") if r[0] not in used]
        large = [r[0] for r in db.execute("SELECT token FROM objects") if r[0] not in used]
        db.executemany("DELETE FROM blobs WHERE token = ?", [(each,) for each in gone])
        db.executemany("DELETE FROM objects WHERE token = ?", [(each,) for each in large])
        if gone or large:
            store.count_removal(db)
    for token in large:
        store.discard_object(token)
    _sweep_files(store, grace_seconds)
    with store.reading() as db:
        if not db.in_transaction:
            db.execute("PRAGMA incremental_vacuum").fetchall()
            db.execute("PRAGMA wal_checkpoint(PASSIVE)")


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
