"""Removes text from records permanently, re-links the hash chain, and records that it was done."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonValue, Value, replace
from hermes.core.errors import SessionBusy
from hermes.core.events import Erased
from hermes.core.scrub import PATIENCE_SECONDS
from hermes.journal import leases, ledger, upkeep
from hermes.journal.body_templates import encode_event, event_of, is_newer, pack_body
from hermes.journal.journal import SqliteJournal
from hermes.journal.reading import LogRow, chain_hash, chain_seed, read_rows
from hermes.journal.transaction import Transaction

# Fields that identify a record and are never changed, and fields inside of which everything may
# change.
_FIXED = frozenset(
    "type id call call_id turn_id name kind model provider stop source principal origin cause"
    " reason action target repeat category choice scope scopes by key parent job person".split()
)
_FREE = frozenset({"arguments", "details", "sealed"})


class Eraser(Protocol):
    """Selects the text that is removed from records."""

    def may_contain(self, raw: str) -> bool:
        """Check a whole record quickly: False only if it cannot contain the text."""
        ...

    def remove_phrases(self, text: str, *, near: bool = False) -> str:
        """Remove phrases from a text. `near` is set for records that mention the text, perhaps in
        other words."""
        ...


class Mentions(Value):
    """Where a session mentions the text: turns, and records of single messages."""

    turns: frozenset[str] = frozenset()
    records: frozenset[int] = frozenset()


class Erasure(Value):
    """The result: the numbers of changed records by session id. `is_wiped` is False while a reader
    keeps old pages in the write-ahead log."""

    sessions: Mapping[str, tuple[int, ...]] = {}
    is_wiped: bool = True


class _ChangedRecords(NamedTuple):
    """The new bodies of a session's records, by number."""

    session: int
    session_id: str
    bodies: dict[int, bytes]


async def erase(
    journal: SqliteJournal,
    eraser: Eraser,
    *,
    near: Mapping[str, Mentions] | None = None,
    by: str = "owner",
    patience_seconds: float = PATIENCE_SECONDS,
) -> Erasure:
    """Rewrite every record that contains the text, in one transaction. SessionBusy, with nothing
    changed, while such a session is open, because it could write the text again. Waits for readers
    of old pages up to `patience_seconds`."""
    near = near or {}
    found = await journal.reading(lambda db: list(_find_records(db, eraser, near)))

    def work(tx: Transaction) -> Erasure:
        # Searched again, because other processes may have written meanwhile.
        changed = list(_find_records(tx.db, eraser, near)) if found else []
        owner, now = journal.writer.owner, journal.world.clock.now()
        for each in changed:
            try:
                leases.check_available(tx, each.session, each.session_id, owner, now)
            except SessionBusy as busy:
                raise SessionBusy(
                    f"{busy} It contains the text to be removed, so nothing was changed."
                ) from busy
        for table, open_rows in _OPEN_BODIES.items():
            _clean_bodies(tx.db, eraser, table, open_rows)
        for each in changed:
            _rewrite(tx, each)
            event = Erased(records=tuple(sorted(each.bodies)), by=by)
            tx.put(each.session, encode_event(event), turn_id="", at=now)
        return Erasure(sessions=_numbers(changed))

    done = await journal.writing(work)
    # Free pages and the write-ahead log still hold the old text.
    is_wiped = await upkeep.vacuum(journal, patience_seconds=patience_seconds)
    return replace(done, is_wiped=is_wiped)


async def find_affected(
    journal: SqliteJournal, eraser: Eraser, *, near: Mapping[str, Mentions] | None = None
) -> dict[str, tuple[int, ...]]:
    """Return the records that `erase` would change, by session id."""
    found = await journal.reading(lambda db: list(_find_records(db, eraser, near or {})))
    return _numbers(found)


def _numbers(changed: Iterable[_ChangedRecords]) -> dict[str, tuple[int, ...]]:
    return {each.session_id: tuple(sorted(each.bodies)) for each in changed}


def _find_records(
    db: sqlite3.Connection, eraser: Eraser, near: Mapping[str, Mentions]
) -> Iterator[_ChangedRecords]:
    for session, session_id in db.execute("SELECT session, id FROM sessions").fetchall():
        nearby = near.get(session_id, Mentions())
        bodies = {
            row.n: body
            for row in read_rows(db, session).whole
            if (body := _clean_body(row, eraser, nearby)) is not None
        }
        if bodies:
            yield _ChangedRecords(session, session_id, bodies)


def _clean_body(row: LogRow, eraser: Eraser, nearby: Mentions) -> bytes | None:
    """Return the body without the text; None when it does not contain it or cannot be read."""
    is_near = row.n in nearby.records or (
        # A message is recorded before the turn that answers it.
        row.turn_id in nearby.turns and row.kind != "message_received"
    )
    if not is_near and not eraser.may_contain(row.body.decode("utf-8", "replace")):
        return None
    if is_newer(row.kind, row.version):
        return None
    try:
        raw = decode(dict, row.body)
    except DecodeError:
        return None
    rest = _without(raw, eraser, is_near, _FIXED)
    return None if rest == raw else encode(rest)


def _without(value: JsonValue, eraser: Eraser, near: bool, fixed: frozenset[str]) -> JsonValue:
    if isinstance(value, str):
        return eraser.remove_phrases(value, near=near)
    if isinstance(value, dict):
        return {
            key: item
            if key in fixed
            else _without(item, eraser, near, frozenset() if key in _FREE else fixed)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_without(item, eraser, near, fixed) for item in value]
    return value


def _rewrite(tx: Transaction, changed: _ChangedRecords) -> None:
    """Store the new bodies and re-link the chain from the first of them on."""
    tx.settle()
    session, session_id, bodies = changed
    query = "SELECT parent_n FROM sessions WHERE session = ?"
    (parent_n,) = tx.db.execute(query, (session,)).fetchone()
    previous, first = chain_seed(session_id), min(bodies)
    for row in read_rows(tx.db, session).whole:
        if row.n < first:
            previous = row.hash
            continue
        kind, version, body = row.kind, row.version, bodies.get(row.n, row.body)
        previous = chain_hash(previous, row.n, row.turn_id, kind, version, row.at, body)
        if row.n in bodies:
            item = pack_body(event_of(kind, version, body), kind, version, body)
            values = (item.template, item.rest, row.id)
            tx.db.execute("UPDATE log SET shape = ?, rest = ? WHERE id = ?", values)
        tx.db.execute("UPDATE log SET hash = ? WHERE id = ?", (previous, row.id))
    tx.forget(session)
    ledger.rebuild_session(tx.db, session, parent_n, session_id)


# Bodies that wait to be read. Those of finished rows are empty.
_OPEN_BODIES = {"inbox": "taken = 0", "received": "1", "posts": "1"}


def _clean_bodies(db: sqlite3.Connection, eraser: Eraser, table: str, open_rows: str) -> None:
    """Clean commands and messages that wait for a session or for their delivery."""
    rows: Sequence[tuple[int, str]] = db.execute(
        f"SELECT id, body FROM {table} WHERE {open_rows} AND body <> ''"
    ).fetchall()
    for id, body in rows:
        if not eraser.may_contain(body):
            continue
        try:
            rest = _without(decode(dict, body), eraser, False, _FIXED)
        except DecodeError:
            continue
        db.execute(f"UPDATE {table} SET body = ? WHERE id = ?", (encode(rest).decode(), id))
