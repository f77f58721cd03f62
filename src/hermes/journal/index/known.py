"""What the tables of the journal say about the sessions of a search."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import NamedTuple

_AT_ONCE = 500
_ORIGINS = {"tool_finished": "$.result.origin", "message_received": "$.message.origin"}


class KnownSession(NamedTuple):
    id: str
    title: str
    source: str
    principal: str
    started_at: float


def sessions_of(
    db: sqlite3.Connection, *, sources: Collection[str] = (), principals: Collection[str] = ()
) -> frozenset[str]:
    """The ids of sessions from any of these sources or principals."""
    conditions = [
        f"m.{column} IN ({', '.join('?' * len(values))})"
        for column, values in (("source", sources), ("principal", principals))
        if values
    ]
    if not conditions:
        return frozenset()
    sql = (
        "SELECT s.id FROM summaries AS m JOIN sessions AS s USING (session)"
        f" WHERE {' OR '.join(conditions)}"
    )
    return frozenset(id for (id,) in db.execute(sql, (*sources, *principals)))


def facts_of(db: sqlite3.Connection, ids: Sequence[str]) -> dict[str, KnownSession]:
    """The facts of these sessions, without unknown ones."""
    found: dict[str, KnownSession] = {}
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        sql = (
            "SELECT s.id, m.title, m.source, m.principal, m.started_at"
            " FROM sessions AS s JOIN summaries AS m USING (session)"
            f" WHERE s.id IN ({', '.join('?' * len(some))})"
        )
        found |= {row[0]: KnownSession(*row) for row in db.execute(sql, tuple(some))}
    return found


def origins_of(db: sqlite3.Connection, ids: Collection[str]) -> dict[str, list[tuple[int, str]]]:
    """By session, the records with text from third parties, and their origins, in order."""
    # The usual origin is not stored, so only records with another one are decoded.
    sql = (
        "SELECT n, json_extract(body, ?) FROM events"
        " WHERE session = (SELECT session FROM sessions WHERE id = ?) AND kind = ?"
        """ AND instr(body, '"origin":"') > 0 AND json_extract(body, ?) IS NOT NULL"""
    )
    found: dict[str, list[tuple[int, str]]] = {}
    for id in ids:
        rows: list[tuple[int, str]] = []
        for kind, path in _ORIGINS.items():
            rows += db.execute(sql, (path, id, kind, path))
        found[id] = sorted(rows)
    return found


def kin_of(db: sqlite3.Connection, session_id: str) -> frozenset[str]:
    """The session with all its ancestors and all forks of these."""
    sql = (
        "WITH RECURSIVE above(session, parent) AS ("
        " SELECT session, parent FROM sessions WHERE id = ?"
        " UNION SELECT s.session, s.parent FROM sessions AS s"
        " JOIN above ON s.session = above.parent"
        "), kin(session) AS ("
        " SELECT session FROM above"
        " UNION SELECT s.session FROM sessions AS s JOIN kin ON s.parent = kin.session)"
        " SELECT id FROM kin JOIN sessions USING (session)"
    )
    return frozenset(id for (id,) in db.execute(sql, (session_id,)))
