"""Read models of the journal: the session list and the usage ledger."""

from __future__ import annotations

import re
import sqlite3
from datetime import datetime
from typing import Any

from hermes.codec.values import Value
from hermes.core.caps import day_of
from hermes.core.errors import UsageError
from hermes.core.messages import Usage
from hermes.journal.journal import SqliteJournal
from hermes.journal.ledger import SPENDING
from hermes.journal.reading import shared_preview
from hermes.journal.summaries import COLUMNS, PICO, Summary

_SECONDS = {"": 86_400, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_AGE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([hdw]?)\s*", re.IGNORECASE)


def parse_age(text: str) -> float:
    """Parse an age; return seconds. Raises UsageError."""
    match = _AGE.fullmatch(text)
    if match is None:
        raise UsageError(f"“{text}” is not an age; write 90 or 30d for days, 12h, or 2w.")
    return float(match[1]) * _SECONDS[match[2].lower()]


def parse_since(text: str, now: float) -> float:
    """Return the seconds since 1970 of a date (UTC unless it names a zone), or of an age before
    now."""
    if _AGE.fullmatch(text):
        return now - parse_age(text)
    is_day = len(text.strip()) == len("2026-05-01")
    return parse_date(f"{text.strip()}T00:00:00+00:00" if is_day else text)


def parse_date(text: str) -> float:
    """Return the seconds since 1970 of an ISO date or time, local unless it names a zone; raise
    UsageError."""
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(f"“{text}” is not a date; write 2026-05-01 or 2026-05-01T14:30.") from None


class SessionFacts(Value):
    """The totals of a session's records, without those that a fork shares."""

    id: str
    title: str = ""
    source: str = ""
    cwd: str = ""
    model: str = ""
    provider: str = ""
    principal: str = ""
    preview: str = ""
    started_at: float = 0.0
    last_at: float = 0.0
    ended_at: float | None = None
    end_reason: str = ""
    last_n: int = 0
    message_count: int = 0
    tool_call_count: int = 0
    api_calls: int = 0
    usage: Usage = Usage()  # its cost is None when no price is known
    parent: str = ""
    parent_n: int = 0  # the last record that a fork shares


class SessionInfo(SessionFacts):
    """A session as lists show it. The message count of a fork includes inherited messages, and its
    preview is inherited until it has a message of its own."""

    archived: bool = False
    children: int = 0  # the child sessions that work for it


class SessionFilter(Value):
    """Which sessions are wanted; all given conditions must hold. Times are seconds since 1970 and
    refer to the last record."""

    source: str | None = None
    exclude_sources: tuple[str, ...] = ()
    title: str | None = None  # matches a part, like `cwd`; the other texts match the whole
    cwd: str | None = None
    within: str | None = None  # a folder that contains the session's folder
    model: str | None = None
    provider: str | None = None
    principal: str | None = None
    end_reason: str | None = None
    before: float | None = None
    after: float | None = None
    min_messages: int | None = None
    max_messages: int | None = None
    ended: bool | None = None
    # False leaves archived sessions out, True lists only them, None lists all.
    archived: bool | None = False


EVERYTHING = SessionFilter(archived=None)
# The sources of sessions that nobody opened.
JOB_SOURCES = ("cron",)
# The sources of child sessions: those that a call waits for, and those that report later.
CHILD_SOURCES = ("subagent", "background")
_TOKENS = ("input", "output", "cache_read", "cache_write", "reasoning")

_COLUMNS = ", ".join(f"m.{name}" for name in COLUMNS)
_FROM = (
    "FROM summaries AS m JOIN sessions AS s USING (session)"
    " LEFT JOIN sessions AS p ON p.session = s.parent"
)
_SELECT = f"SELECT s.id, coalesce(p.id, ''), s.parent_n, {_COLUMNS} {_FROM}"

_CHILDREN = (
    "SELECT count(*) FROM sessions AS s JOIN summaries AS m USING (session)"
    " WHERE s.parent = ? AND m.source IN (?, ?)"
)
_EQUAL = ("source", "model", "provider", "principal", "end_reason")
_CLAUSES = {
    "title": "instr(lower(m.title), lower(?)) > 0",
    "cwd": "instr(m.cwd, ?) > 0",
    "within": "instr(rtrim(m.cwd, '/') || '/', rtrim(?, '/') || '/') = 1",
    "before": "m.last_at < ?",
    "after": "m.last_at >= ?",
    "min_messages": "m.message_count + m.inherited >= ?",
    "max_messages": "m.message_count + m.inherited <= ?",
    "archived": "m.archived = ?",
    "ended": "(m.ended_at IS NOT NULL) = ?",
    **{name: f"m.{name} = ?" for name in _EQUAL},
}


async def list_sessions(
    journal: SqliteJournal,
    wanted: SessionFilter | None = None,
    *,
    limit: int | None = 20,
) -> tuple[SessionInfo, ...]:
    """List sessions, most recently used first."""
    chosen = wanted or SessionFilter()
    return await journal.reading(lambda db: select(db, chosen, limit=limit))


async def session_info(journal: SqliteJournal, session_id: str) -> SessionInfo | None:
    return await journal.reading(lambda db: info_of(db, session_id))


def select(
    db: sqlite3.Connection, wanted: SessionFilter, *, limit: int | None
) -> tuple[SessionInfo, ...]:
    where, values = conditions(wanted)
    query = f"{_SELECT} WHERE {where} ORDER BY m.last_at DESC, m.session DESC LIMIT ?"
    rows = db.execute(query, (*values, -1 if limit is None else limit))
    return tuple([_info(db, row) for row in rows.fetchall()])


def info_of(db: sqlite3.Connection, session_id: str) -> SessionInfo | None:
    row = db.execute(f"{_SELECT} WHERE s.id = ?", (session_id,)).fetchone()
    return _info(db, row) if row else None


def facts_of(db: sqlite3.Connection, session_id: str) -> SessionFacts | None:
    row = db.execute(f"{_SELECT} WHERE s.id = ?", (session_id,)).fetchone()
    return SessionFacts(**_facts(row, Summary(*row[3:]))) if row else None


def conditions(wanted: SessionFilter) -> tuple[str, list[Any]]:
    """Return an SQL condition on `m` (summaries) and its values."""
    clauses, values = ["1"], []
    for name, clause in _CLAUSES.items():
        value = getattr(wanted, name)
        if value is not None:
            clauses.append(clause)
            values.append(value)
    if wanted.exclude_sources:
        marks = ", ".join("?" * len(wanted.exclude_sources))
        clauses.append(f"m.source NOT IN ({marks})")
        values += wanted.exclude_sources
    return " AND ".join(clauses), values


def _info(db: sqlite3.Connection, row: tuple[Any, ...]) -> SessionInfo:
    summary = Summary(*row[3:])
    facts = _facts(row, summary)
    facts["message_count"] += summary.inherited
    if not summary.preview and facts["parent_n"]:
        facts["preview"] = shared_preview(db, summary.session)
    (children,) = db.execute(_CHILDREN, (summary.session, *CHILD_SOURCES)).fetchone()
    return SessionInfo(**facts, archived=bool(summary.archived), children=children)


def _facts(row: tuple[Any, ...], summary: Summary) -> dict[str, Any]:
    id, parent, parent_n = row[:3]
    usage = Usage(**{name: getattr(summary, name) for name in _TOKENS}, cost=summary.cost)
    same = {name: getattr(summary, name) for name in _SAME}
    return {"id": id, "parent": parent, "parent_n": parent_n, "usage": usage, **same}


_SAME = tuple(name for name in SessionFacts.__struct_fields__ if name in COLUMNS)


class Spending(Value):
    """A row of the ledger."""

    session_id: str
    day: str  # an ISO date in UTC
    model: str
    provider: str
    cause: str
    principal: str
    job: str
    calls: int
    replies: int
    usage: Usage
    unpriced: int = 0  # replies without a known cost
    # The most that calls in progress, and calls that never ended, may have cost in addition.
    assumed: Usage = Usage()
    assumed_calls: int = 0  # the number of those calls
    # The part of the assumed calls whose report could not be right.
    corrected_calls: int = 0
    corrected_cost: float = 0.0


_SUMMED = (
    "calls replies unpriced input output cache_read cache_write reasoning cost assumed_calls"
    " assumed_input assumed_output assumed_cost assumed_unpriced corrected_calls corrected_cost"
).split()


async def read_spending(
    journal: SqliteJournal, *, session_id: str | None = None, since: float = 0.0
) -> tuple[Spending, ...]:
    """Return the spending, oldest day first."""
    sums = ", ".join(f"sum({name}) AS {name}" for name in _SUMMED)
    query = (
        "SELECT id, date(day * 86400, 'unixepoch'), model, provider, cause, max(principal),"
        f" max(job), {sums} FROM ({SPENDING})"
        " WHERE day >= ?1 AND (?2 IS NULL OR id = ?2) GROUP BY day, id, model, provider, cause"
        " ORDER BY day, id, model, provider, cause"
    )
    values = (day_of(since), session_id)
    rows = await journal.reading(lambda db: db.execute(query, values).fetchall())
    return tuple(_spending_of(row) for row in rows)


def _spending_of(row: tuple[Any, ...]) -> Spending:
    session_id, day, model, provider, cause, principal, job, *numbers = row
    of = dict(zip(_SUMMED, numbers, strict=True))
    cost = of["cost"] / PICO if of["replies"] > of["unpriced"] else None
    is_assumption_priced = of["assumed_calls"] > of["assumed_unpriced"]
    return Spending(
        session_id=session_id,
        day=day,
        model=model,
        provider=provider,
        cause=cause,
        principal=principal,
        job=job,
        calls=of["calls"] + of["assumed_calls"],
        replies=of["replies"],
        usage=Usage(**{name: of[name] for name in _TOKENS}, cost=cost),
        unpriced=of["unpriced"],
        assumed=Usage(
            input=of["assumed_input"],
            output=of["assumed_output"],
            cost=of["assumed_cost"] / PICO if is_assumption_priced else None,
        ),
        assumed_calls=of["assumed_calls"],
        corrected_calls=of["corrected_calls"],
        corrected_cost=of["corrected_cost"] / PICO,
    )
