"""Leases: which process may write a session."""

from __future__ import annotations

from pathlib import Path

from hermes.core.errors import Fenced, SessionBusy
from hermes.core.ports import Lease
from hermes.journal.locks import LeaseOwner, is_alive
from hermes.journal.transaction import Transaction

STALE_SECONDS = 30.0
HEARTBEAT_SECONDS = 10.0


def lock_folder(home: Path) -> Path:
    return home / "locks"


def acquire_lease(
    tx: Transaction, session: int, session_id: str, owner: LeaseOwner, now: float
) -> Lease:
    """Acquire the lease; SessionBusy while another owner is alive."""
    check_available(tx, session, session_id, owner, now)
    return take_lease(tx, session, session_id, owner, now)


def take_lease(
    tx: Transaction, session: int, session_id: str, owner: LeaseOwner, now: float
) -> Lease:
    """The same for a new session, which cannot have an owner."""
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
