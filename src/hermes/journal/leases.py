"""Leases: which process may write a session, and how other processes send it commands and follow
its answers."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import cast

from hermes.codec.file_lock import FileLock
from hermes.codec.json import DecodeError, decode, encode
from hermes.core.commands import Command
from hermes.core.errors import Fenced, SessionBusy
from hermes.core.events import MessageReceived, Record, Steered, TurnEnded, TurnStarted
from hermes.core.ports import InboxCommand, Journal, Lease
from hermes.core.world import Clock
from hermes.journal.transaction import Transaction

log = logging.getLogger(__name__)

STALE_SECONDS = 30.0
HEARTBEAT_SECONDS = 10.0
# How long the keys of executed commands are kept, against late redelivery.
KEEP_SECONDS = 30 * 86_400.0
POLL_SECONDS = 0.1
POLLS_PER_LEASE_CHECK = 10

_COMMAND = cast(type[Command], Command)


class LeaseOwner:
    """This process as an owner of sessions. It holds a lock file named after itself while it owns
    any."""

    def __init__(self, folder: Path) -> None:
        # Not from the world: two processes that replay the same seed are still two.
        self.name = f"{os.getpid()}-{os.urandom(6).hex()}"
        self.folder = folder
        self._lock = FileLock(folder / f"{self.name}.lock")

    @property
    def holds_lock(self) -> bool:
        return self._lock.is_held

    def hold_lock(self) -> None:
        """Hold the lock file from now on, and remove the files of dead processes."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self.folder.glob("*.lock"):
            is_alive(self.folder, path.stem)
        self._lock.acquire()

    def release(self) -> None:
        if self._lock.is_held:
            self._lock.remove()


def is_alive(folder: Path, owner: str) -> bool:
    """Whether the process of that name holds its lock file. A file that is not held is removed."""
    path = folder / f"{owner}.lock"
    if not path.exists():
        return False
    lock = FileLock(path)
    if not lock.acquire(timeout=0):
        lock.close()
        return True
    lock.remove()
    return False


def lock_folder(home: Path) -> Path:
    return home / "locks"


def take_lease(
    tx: Transaction, session: int, session_id: str, owner: LeaseOwner, now: float
) -> Lease:
    """Take the lease of a new session, or of one that `check_available` has found free."""
    if not owner.holds_lock:
        owner.hold_lock()
        tx.db.execute("DELETE FROM owners WHERE beat < ?", (now - 2 * STALE_SECONDS,))
    if not tx.has_beaten:
        # A process that owned nothing for a while has sent no heartbeat.
        write_heartbeat(tx, owner, now)
    (fence,) = tx.db.execute(
        "INSERT INTO leases VALUES (?, ?, 1) ON CONFLICT(session) DO UPDATE SET"
        " owner = excluded.owner, fence = fence + 1 RETURNING fence",
        (session, owner.name),
    ).fetchone()
    tx.refresh(session)
    tx.taken.add(session)
    tx.freed.discard(session)
    tx.leases[session_id] = (session, owner.name, fence)
    return Lease(session_id=session_id, owner=owner.name, fence=fence)


def check_available(
    tx: Transaction, session: int, session_id: str, owner: LeaseOwner, now: float
) -> None:
    query = (
        "SELECT owner, beat FROM leases LEFT JOIN owners USING (owner)"
        " WHERE session = ? AND owner <> ''"
    )
    row = tx.db.execute(query, (session,)).fetchone()
    if row is None:
        return
    holder, beaten = row
    if holder == owner.name or (
        beaten is not None and now - beaten < STALE_SECONDS and is_alive(owner.folder, holder)
    ):
        raise SessionBusy(
            f"Session {session_id} is open in process {holder.partition('-')[0]}; "
            "close it there, or fork it."
        )


def release_lease(tx: Transaction, lease: Lease) -> None:
    """Release the lease; a void lease is ignored."""
    try:
        session = tx.check_lease(lease)
    except Fenced:
        return
    tx.db.execute("UPDATE leases SET owner = '' WHERE session = ?", (session,))
    tx.freed.add(session)
    tx.taken.discard(session)
    tx.leases.pop(lease.session_id, None)


def write_heartbeat(tx: Transaction, owner: LeaseOwner, now: float) -> None:
    tx.db.execute("INSERT OR REPLACE INTO owners VALUES (?, ?)", (owner.name, now))
    tx.has_beaten = True


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
    query = "SELECT id, body FROM inbox WHERE session = ? AND taken = 0 ORDER BY id"
    found: list[InboxCommand] = []
    for id, body in db.execute(query, row):
        try:
            found.append(InboxCommand(id=id, command=decode(_COMMAND, body)))
        except DecodeError:
            # Written by a newer Hermes, or damaged: it stays and does not block the others.
            log.warning("a command in the inbox cannot be read", extra={"inbox_id": id})
    return tuple(found)


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


async def follow_remote(
    journal: Journal, clock: Clock, session_id: str, key: str
) -> AsyncGenerator[Record]:
    """Yield the message with this key and the records of the turn that answers it in another
    process. If that process dies, the records end without a TurnEnded, and the message waits until
    the session is opened again."""
    polls = last_read = message = 0
    turn_id = ""
    while True:
        polls += 1
        is_abandoned = polls % POLLS_PER_LEASE_CHECK == 0 and await _is_free(journal, session_id)
        for record in await journal.read(session_id, after=last_read):
            last_read, event = record.n, record.event
            if isinstance(event, MessageReceived) and event.key == key:
                message = record.n
                yield record
                continue
            if isinstance(event, TurnStarted | Steered) and message in event.takes:
                turn_id = record.turn_id
            if turn_id and record.turn_id == turn_id:
                yield record
                if isinstance(event, TurnEnded):
                    return
        if is_abandoned:
            return
        await clock.sleep(POLL_SECONDS)


async def _is_free(journal: Journal, session_id: str) -> bool:
    try:
        lease = await journal.acquire(session_id)
    except SessionBusy:
        return False
    await journal.release(lease)
    return True
