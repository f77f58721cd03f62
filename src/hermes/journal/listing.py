"""The session list: one row per session, filtered and sorted, from the derived tables."""

from __future__ import annotations

import sqlite3
from typing import Any

from hermes.codec.values import Value
from hermes.core.messages import Usage
from hermes.journal.inheritance import shared_preview
from hermes.journal.journal import SqliteJournal
from hermes.journal.summaries import Summary


class SessionFacts(Value):
    """The totals of a session's records. A fork counts only its own; `parent_n` is the last record
    that it shares. `cost` is None when no price is known."""

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
    usage: Usage = Usage()
    parent: str = ""
    parent_n: int = 0


class SessionInfo(SessionFacts):
    """A session as lists show it. The message count of a fork includes inherited messages, and its
    preview is inherited until it has a message of its own."""

    archived: bool = False


class SessionFilter(Value):
    """All given conditions must hold. Times are seconds since 1970 and refer to the last record.
    `title` and `cwd` match a part, the other fields the whole; `within` is a folder that contains
    the session's folder. `archived`: False leaves archived sessions out, True lists only them, None
    lists all."""

    source: str | None = None
    exclude_sources: tuple[str, ...] = ()
    title: str | None = None
    cwd: str | None = None
    within: str | None = None
    model: str | None = None
    provider: str | None = None
    principal: str | None = None
    end_reason: str | None = None
    before: float | None = None
    after: float | None = None
    min_messages: int | None = None
    max_messages: int | None = None
    ended: bool | None = None
    archived: bool | None = False


EVERYTHING = SessionFilter(archived=None)

_COLUMNS = ", ".join(f"m.{name}" for name in Summary.COLUMNS)
_FROM = (
    "FROM summaries AS m JOIN sessions AS s USING (session)"
    " LEFT JOIN sessions AS p ON p.session = s.parent"
)
_SELECT = f"SELECT s.id, coalesce(p.id, ''), s.parent_n, {_COLUMNS} {_FROM}"

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
    offset: int = 0,
) -> tuple[SessionInfo, ...]:
    """Most recently used first."""
    chosen = wanted or SessionFilter()
    return await journal.reading(lambda db: select(db, chosen, limit=limit, offset=offset))


async def session_info(journal: SqliteJournal, session_id: str) -> SessionInfo | None:
    return await journal.reading(lambda db: info_of(db, session_id))


def select(
    db: sqlite3.Connection, wanted: SessionFilter, *, limit: int | None, offset: int = 0
) -> tuple[SessionInfo, ...]:
    where, values = conditions(wanted)
    query = f"{_SELECT} WHERE {where} ORDER BY m.last_at DESC, m.session DESC LIMIT ? OFFSET ?"
    rows = db.execute(query, (*values, -1 if limit is None else limit, offset))
    return tuple([_info(db, row) for row in rows.fetchall()])


def info_of(db: sqlite3.Connection, session_id: str) -> SessionInfo | None:
    row = db.execute(f"{_SELECT} WHERE s.id = ?", (session_id,)).fetchone()
    return _info(db, row) if row else None


def facts_of(db: sqlite3.Connection, session_id: str) -> SessionFacts | None:
    row = db.execute(f"{_SELECT} WHERE s.id = ?", (session_id,)).fetchone()
    return SessionFacts(**_facts(row, _summary(row))) if row else None


def conditions(wanted: SessionFilter) -> tuple[str, list[Any]]:
    """An SQL condition on `m` (summaries) and its values."""
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
    summary = _summary(row)
    facts = _facts(row, summary)
    facts["message_count"] += summary.inherited
    if not summary.preview and facts["parent_n"]:
        facts["preview"] = shared_preview(db, summary.session)
    return SessionInfo(**facts, archived=bool(summary.archived))


def _summary(row: tuple[Any, ...]) -> Summary:
    return Summary.of_row(row[3:], row[0])


def _facts(row: tuple[Any, ...], summary: Summary) -> dict[str, Any]:
    id, parent, parent_n = row[:3]
    usage = Usage(
        input=summary.input,
        output=summary.output,
        cache_read=summary.cache_read,
        cache_write=summary.cache_write,
        reasoning=summary.reasoning,
        cost=summary.cost,
    )
    same = {name: getattr(summary, name) for name in _SAME}
    return {"id": id, "parent": parent, "parent_n": parent_n, "usage": usage, **same}


_SAME = tuple(name for name in SessionFacts.__struct_fields__ if name in Summary.COLUMNS)
