"""Commands that other processes leave for the owner of a session."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from typing import cast

from hermes.codec.json import DecodeError, decode, encode
from hermes.core.commands import Command
from hermes.core.errors import Fenced
from hermes.core.ports import InboxCommand, Lease
from hermes.journal.transaction import Transaction

log = logging.getLogger(__name__)

# How long the keys of executed commands are kept, against late redelivery.
KEEP_SECONDS = 30 * 86_400.0

_COMMAND = cast(type[Command], Command)


def post_command(tx: Transaction, session_id: str, command: Command, key: str, now: float) -> None:
    tx.db.execute(
        "INSERT INTO inbox(session, key, body, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (tx.session(session_id), key, encode(command).decode(), now),
    )


def waiting_commands(db: sqlite3.Connection, lease: Lease) -> tuple[InboxCommand, ...]:
    query = (
        "SELECT l.session FROM leases AS l JOIN sessions AS s USING (session)"
        " WHERE s.id = ? AND l.owner = ? AND l.fence = ?"
    )
    row = db.execute(query, (lease.session_id, lease.owner, lease.fence)).fetchone()
    if row is None:
        raise Fenced(f"Session {lease.session_id} was taken over by another process.")
    found = db.execute(
        "SELECT id, body FROM inbox WHERE session = ? AND taken = 0 ORDER BY id", row
    )
    return tuple(item for id, body in found if (item := _waiting(id, body)))


def _waiting(id: int, body: str) -> InboxCommand | None:
    try:
        return InboxCommand(id=id, command=decode(_COMMAND, body))
    except DecodeError:
        # Written by a newer Hermes, or damaged: it stays and does not block the others.
        log.warning("a command in the inbox cannot be read", extra={"inbox_id": id})
        return None


def mark_taken(tx: Transaction, lease: Lease, ids: Sequence[int], now: float) -> None:
    session = tx.check_lease(lease)
    for id in ids:
        where = "WHERE id = ? AND session = ?"
        tx.db.execute(f"DELETE FROM inbox {where} AND key = ''", (id, session))
        tx.db.execute(f"UPDATE inbox SET taken = 1, body = '' {where}", (id, session))
    tx.db.execute(
        "DELETE FROM inbox WHERE session = ? AND taken = 1 AND at < ?",
        (session, now - KEEP_SECONDS),
    )
