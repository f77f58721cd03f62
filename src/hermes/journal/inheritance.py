"""What a fork inherits from its ancestors: the number of messages and the preview."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from hermes.codec.json import DecodeError
from hermes.core.events import MessageReceived
from hermes.journal.faults import is_damage
from hermes.journal.rows import read_rows
from hermes.journal.summaries import preview_of
from hermes.journal.versions import event_of, is_newer

# A fork of a fork shares with the oldest only what its parent shares.
ABOVE = (
    "WITH RECURSIVE above(session, shared) AS ("
    " SELECT parent, parent_n FROM sessions WHERE session = ? AND parent_n > 0 UNION ALL"
    " SELECT s.parent, min(s.parent_n, shared) FROM above JOIN sessions AS s USING (session)"
    " WHERE s.parent_n > 0)"
)
_COUNTED = {"message_received": 1, "reply_added": 1, "withdrawn": -1}
_COUNT = (
    "SELECT coalesce(sum(iif(kind = 'withdrawn', -1, 1)), 0) FROM log JOIN shapes USING (shape)"
    " WHERE session = ? AND n <= ? AND kind IN ('message_received', 'reply_added', 'withdrawn')"
)
_RECEIVED = (
    "SELECT shape, CAST(rest AS BLOB) FROM log INDEXED BY log_place WHERE session = ? AND n <= ?"
    " AND shape IN (SELECT shape FROM shapes WHERE kind = 'message_received') ORDER BY n"
)


def shared_messages(db: sqlite3.Connection, session: int) -> int:
    """The number of messages the session started with."""
    return sum(_count(db, *part) for part in _ancestors(db, session))


def shared_preview(db: sqlite3.Connection, session: int) -> str:
    """The beginning of the first message that a person wrote in an ancestor."""
    for part in _ancestors(db, session):
        for event in _received_messages(db, *part):
            if found := preview_of(event):
                return found
    return ""


def _ancestors(db: sqlite3.Connection, session: int) -> list[tuple[int, int]]:
    """The ancestors, oldest first, each with its last shared record."""
    return db.execute(f"{ABOVE} SELECT session, shared FROM above", (session,)).fetchall()[::-1]


def _count(db: sqlite3.Connection, session: int, shared: int) -> int:
    try:
        return int(db.execute(_COUNT, (session, shared)).fetchone()[0])
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    return sum(_COUNTED.get(row.kind, 0) for row in read_rows(db, session, 0, shared).whole)


def _received_messages(
    db: sqlite3.Connection, session: int, shared: int
) -> Iterator[MessageReceived]:
    query = "SELECT version, CAST(head AS BLOB), CAST(tail AS BLOB) FROM shapes WHERE shape = ?"
    for shape, rest in db.execute(_RECEIVED, (session, shared)):
        version, head, tail = db.execute(query, (shape,)).fetchone()
        if is_newer("message_received", version):
            continue
        try:
            event = event_of("message_received", version, head + rest + tail)
        except DecodeError:
            continue
        if isinstance(event, MessageReceived):
            yield event
