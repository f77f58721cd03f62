"""The tables derived from events: updated with every commit, rebuilt when missing."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Sequence

from hermes.core.events import MessageReceived
from hermes.journal import schema
from hermes.journal.body_templates import readable_event
from hermes.journal.reading import ABOVE, last_n, read_rows, shared_messages
from hermes.journal.summaries import (
    COLUMNS,
    CORRECTED,
    LedgerChange,
    PendingCall,
    Summary,
    to_picodollars,
)

log = logging.getLogger(__name__)

_SAVE = f"INSERT OR REPLACE INTO summaries VALUES ({','.join('?' * len(COLUMNS))})"


def _upsert(table: str, key: str, numbers: str) -> str:
    """Return the SQL that inserts a row, or adds its numbers to the row with the same key."""
    marks = ",".join("?" * len((*key.split(), *numbers.split())))
    sums = ", ".join(f"{name} = {name} + excluded.{name}" for name in numbers.split())
    on_conflict = f"ON CONFLICT({key.replace(' ', ', ')}) DO UPDATE SET {sums}"
    return f"INSERT INTO {table} VALUES ({marks}) {on_conflict}"


_CHARGE = _upsert(
    "usage",
    "session day model provider cause",
    "calls replies input output cache_read cache_write reasoning cost unpriced",
)
_RAISE = _upsert("raised", "session scope key", "cost tokens")
_DAILY = _upsert("daily", "day principal", "tokens cost")
_TASK = _upsert("tasks", "task session", "tokens cost")
_JOB = _upsert("jobs", "job", "tokens cost")
_ASSUME = (
    f"INSERT OR REPLACE INTO assumed VALUES ({','.join('?' * (len(PendingCall._fields) + 1))})"
)
_SETTLE = "DELETE FROM assumed WHERE session = ? AND call = ?"
_KEY = "INSERT OR IGNORE INTO message_keys VALUES (?, ?, ?)"
_NEW_KEY = f"""
INSERT OR IGNORE INTO message_keys SELECT ?, ?, ? WHERE NOT EXISTS (
    {ABOVE} SELECT 1 FROM above JOIN message_keys AS k USING (session)
    WHERE k.key = ? AND k.n <= shared)
"""

_OF_SESSION = "JOIN summaries AS m USING (session) JOIN sessions AS s USING (session)"
_SETTLED = (
    "SELECT s.id, m.principal, m.job, u.day, u.model, u.provider, u.cause, u.calls, u.replies,"
    " u.input, u.output, u.cache_read, u.cache_write, u.reasoning, u.cost, u.unpriced,"
    " 0 AS assumed_calls, 0 AS assumed_input, 0 AS assumed_output, 0 AS assumed_cost,"
    f" 0 AS assumed_unpriced FROM usage AS u {_OF_SESSION}"
)
_ASSUMED = (
    "SELECT s.id, m.principal, m.job, a.day, a.model, a.provider, a.cause, 0, 0, 0, 0, 0, 0, 0, 0,"
    f" 0, 1, a.input, a.output, a.cost, 1 - a.priced FROM assumed AS a {_OF_SESSION}"
)
_CORRECTED = (
    f"a.open = {CORRECTED} AS corrected_calls,"
    f" CASE a.open WHEN {CORRECTED} THEN a.cost ELSE 0 END AS corrected_cost"
)
_NOT_CORRECTED = "0 AS corrected_calls, 0 AS corrected_cost"
SPENDING = (
    f"{_SETTLED.replace(' FROM usage', f', {_NOT_CORRECTED} FROM usage')}"
    f" UNION ALL {_ASSUMED.replace(' FROM assumed', f', {_CORRECTED} FROM assumed')}"
    f" UNION ALL SELECT *, {_NOT_CORRECTED} FROM carried"
)
"""All spending, settled and assumed, with the columns of the table `carried` and the part of the
assumed calls whose report was corrected."""

Changed = tuple[Summary, LedgerChange]


def save(db: sqlite3.Connection, summaries: Iterable[Summary]) -> None:
    db.executemany(_SAVE, [summary.row() for summary in summaries])


def load(db: sqlite3.Connection, session: int) -> Summary | None:
    query = "SELECT s.id, m.* FROM summaries AS m JOIN sessions AS s USING (session)"
    row = db.execute(f"{query} WHERE session = ?", (session,)).fetchone()
    if row is None:
        return None
    query = f"SELECT {', '.join(PendingCall._fields)} FROM assumed WHERE session = ?"
    calls = [PendingCall(*entry) for entry in db.execute(query, (session,))]
    summary = Summary(*row[1:])
    summary.id, summary.assumed = row[0], {call.call: call for call in calls}
    return summary


def charge(db: sqlite3.Connection, changed: Sequence[Changed]) -> None:
    """Write changes of the ledger in order."""
    _charge_sessions(db, changed)
    counted = [(summary, each) for summary, each in changed if each.spent or each.assumed]
    db.executemany(_DAILY, [(c.day, s.principal, c.tokens, c.cost) for s, c in counted])
    db.executemany(_JOB, [(s.job, c.tokens, c.cost) for s, c in counted])


def _charge_sessions(db: sqlite3.Connection, changed: Sequence[Changed]) -> None:
    """Update everything but the totals over sessions."""
    for summary, change in changed:
        session = summary.session
        if change.assumed:
            db.execute(_ASSUME, (session, *change.assumed))
        if change.gone:
            db.execute(_SETTLE, (session, change.gone))
        if change.spent:
            day, model, provider, cause, usage, calls, replies = change.spent
            key = (session, day, model, provider, cause)
            amounts = (usage.input, usage.output, usage.cache_read, usage.cache_write)
            priced = (usage.reasoning, to_picodollars(usage.cost))
            unpriced = replies if usage.cost is None else 0
            db.execute(_CHARGE, (*key, calls, replies, *amounts, *priced, unpriced))
        if change.task and (change.tokens or change.cost):
            db.execute(_TASK, (change.task, session, change.tokens, change.cost))
        if more := change.raised:
            added = (to_picodollars(more.usd), more.tokens)
            db.execute(_RAISE, (session, more.scope, more.key, *added))


def remember_key(db: sqlite3.Connection, session: int, key: str, n: int) -> bool:
    """Store the key; return False when the session, or a parent in the shared records, has it
    already."""
    return db.execute(_NEW_KEY, (session, key, n, session, key)).rowcount == 1


def rebuild(db: sqlite3.Connection) -> None:
    """Rebuild all derived tables inside the caller's transaction."""
    log.info("rebuilding the derived tables of the journal")
    schema.create_projections(db)
    for row in db.execute("SELECT session, parent_n, id FROM sessions").fetchall():
        _rebuild_rows(db, *row)
    total_up(db)


def rebuild_session(db: sqlite3.Connection, session: int, parent_n: int, id: str) -> Summary:
    for table in schema.SESSION_TABLES:
        db.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
    summary = _rebuild_rows(db, session, parent_n, id)
    total_up(db)
    return summary


def total_up(db: sqlite3.Connection) -> None:
    """Compute the totals over sessions from the spending of each."""
    sums = (
        "sum(input + cache_read + cache_write + output + assumed_input + assumed_output),"
        f" sum(cost + assumed_cost) FROM ({SPENDING})"
    )
    db.execute("DELETE FROM daily")
    db.execute("DELETE FROM jobs")
    db.execute(f"INSERT INTO daily SELECT day, principal, {sums} GROUP BY 1, 2")
    db.execute(f"INSERT INTO jobs SELECT job, {sums} GROUP BY 1")


def keep_spending(db: sqlite3.Connection, session: int) -> None:
    """Keep the spending of a session before it is deleted; the totals stay."""
    for query in (_SETTLED, _ASSUMED):
        db.execute(f"INSERT INTO carried {query} WHERE session = ?", (session,))


def drop_kept_spending(db: sqlite3.Connection, session_id: str) -> None:
    """When a deleted session is imported again with its events, drop the spending that was kept for
    it."""
    if db.execute("DELETE FROM carried WHERE id = ?", (session_id,)).rowcount:
        total_up(db)


def _rebuild_rows(db: sqlite3.Connection, session: int, parent_n: int, id: str) -> Summary:
    summary = Summary(session, parent_n, id=id, job=id)
    changed: list[Changed] = []
    for row in read_rows(db, session).whole:
        event = readable_event(row.kind, row.version, row.body)
        if event is None:
            continue
        change = summary.add(event, turn_id=row.turn_id, at=row.at)
        if change is not None:
            changed.append((summary, change))
        if isinstance(event, MessageReceived) and event.key:
            db.execute(_KEY, (session, event.key, row.n))
    summary.last_n = max(parent_n, last_n(db, session))
    summary.inherited = shared_messages(db, session)
    save(db, [summary])
    _charge_sessions(db, changed)
    return summary
