"""One write transaction: the work of several callers, checked, collected and flushed once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

import msgspec

from hermes.core.errors import Fenced, JournalError, NotFound, UsageError
from hermes.core.events import MessageReceived, TitleChanged
from hermes.core.ports import Lease
from hermes.journal import ledger, titles
from hermes.journal.body_templates import StoredEvent
from hermes.journal.connections import ignore_damage
from hermes.journal.reading import chain_hash, chain_seed, last_n, shared_messages
from hermes.journal.summaries import LedgerChange, Summary

_INSERT = "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_NEWEST = "SELECT hash FROM log WHERE session = ? ORDER BY n DESC LIMIT 1"


HeldLease = tuple[int, str, int]
"""The number of a session, its owner and fence."""


class FileCache:
    """Cached facts about the file, valid while no other process writes it: leases by session id,
    and the newest record id (0 when unknown)."""

    def __init__(self) -> None:
        self.leases: dict[str, HeldLease] = {}
        self.last_id = 0

    def forget(self) -> None:
        self.leases.clear()
        self.last_id = 0


class SessionHead(msgspec.Struct):
    """The end of a session: number and hash of its last record, and its totals."""

    n: int
    hash: bytes
    summary: Summary

    def copy(self) -> SessionHead:
        return SessionHead(self.n, self.hash, self.summary.copy())


class Transaction:
    """The state of one transaction, between BEGIN and COMMIT. Work that raises HermesError does so
    before it writes anything, so that other work in the same transaction is not affected."""

    def __init__(
        self, db: sqlite3.Connection, heads: dict[int, SessionHead], in_file: FileCache, owner: str
    ) -> None:
        self.db = db
        self.owner = owner
        self.leases = in_file.leases
        self.has_beaten = False
        self._in_file = in_file
        self.heads: dict[int, SessionHead] = {}
        self.taken: set[int] = set()
        self.freed: set[int] = set()
        self.overdue: tuple[Callable[[Transaction], None], ...] = ()
        self.written_bytes = 0
        self._known = heads
        self._rows: list[tuple[object, ...]] = []
        self._changed: list[tuple[Summary, LedgerChange]] = []
        self._dirty: set[int] = set()

    def session(self, session_id: str) -> int:
        """Return the number of a session; raise NotFound."""
        if (found := self.find_session(session_id)) is None:
            raise NotFound(f"There is no session {session_id}.")
        return found

    def find_session(self, session_id: str) -> int | None:
        row = self.db.execute("SELECT session FROM sessions WHERE id = ?", (session_id,)).fetchone()
        return int(row[0]) if row else None

    def create(self, session_id: str, *, parent: str = "", parent_n: int = 0) -> int:
        """Create a session without records; a fork is linked to its parent."""
        above = self._parent(parent, parent_n) if parent else None
        row = self.db.execute(
            "INSERT INTO sessions(id, parent, parent_n) VALUES (?, ?, ?)"
            " ON CONFLICT(id) DO NOTHING RETURNING session",
            (session_id, above, parent_n),
        ).fetchone()
        if row is None:
            raise JournalError(f"There is a session {session_id} already; choose another id.")
        found = int(row[0])
        summary = Summary(found, parent_n, id=session_id, job=session_id)
        summary.inherited = shared_messages(self.db, found) if parent_n else 0
        self.heads[found] = SessionHead(parent_n, chain_seed(session_id), summary)
        return found

    def check_lease(self, lease: Lease) -> int:
        """Return the number of the lease's session; raise Fenced when the lease is void."""
        known: HeldLease | None = self.leases.get(lease.session_id)
        if known is None:
            query = "SELECT session, owner, fence FROM sessions JOIN leases USING (session)"
            known = self.db.execute(f"{query} WHERE id = ?", (lease.session_id,)).fetchone()
        if known is None or known[1:] != (lease.owner, lease.fence):
            if known is not None:
                self._known.pop(known[0], None)
            raise Fenced(
                f"Session {lease.session_id} was taken over by another process; nothing was "
                "written here. Open it again to continue."
            )
        self.leases[lease.session_id] = known
        return known[0]

    def write(
        self, session: int, events: Sequence[StoredEvent], *, turn_id: str, at: float
    ) -> tuple[int, ...]:
        """Add records. Return the number of each, 0 for a message with a known key."""
        self.check_titles(session, events)
        return tuple([self.put(session, item, turn_id=turn_id, at=at) for item in events])

    def head(self, session: int) -> SessionHead:
        """Return the end of the session as this transaction sees it."""
        head = self.heads.get(session)
        if head is None:
            known = self._known.get(session)
            head = known.copy() if known else self._load(session)
            self.heads[session] = head
        return head

    def settle(self) -> None:
        """Write everything collected so far to the tables."""
        if not self._dirty:
            return
        self.db.executemany(_INSERT, self._rows)
        ledger.save(self.db, [self.heads[session].summary for session in self._dirty])
        if self._changed:
            ledger.charge(self.db, self._changed)
        self._rows, self._changed, self._dirty = [], [], set()

    def refresh(self, session: int) -> None:
        """Reload the end of a session: another process may have written it."""
        self._known.pop(session, None)
        self.head(session)

    def forget(self, session: int) -> None:
        """Forget a session that was deleted or changed outside this transaction."""
        self.heads.pop(session, None)
        self._known.pop(session, None)
        for id in [id for id, held in self.leases.items() if held[0] == session]:
            del self.leases[id]

    def put(self, session: int, item: StoredEvent, *, turn_id: str, at: float, n: int = 0) -> int:
        """Add one record without a check of titles, under its own number if it has one."""
        head, event = self.head(session), item.event
        self._dirty.add(session)
        if n:
            head.n = head.summary.last_n = n - 1
        n = head.n + 1
        if (
            isinstance(event, MessageReceived)
            and event.key
            and not ledger.remember_key(self.db, session, event.key, n)
        ):
            return 0
        head.n = n
        head.hash = chain_hash(head.hash, n, turn_id, item.kind, item.version, at, item.body)
        id = self._new_id()
        self._rows.append((id, session, n, turn_id, item.template, item.rest, at, head.hash))
        self.written_bytes += len(item.rest)
        change = head.summary.add(event, turn_id=turn_id, at=at)
        if change is not None:
            self._changed.append((head.summary, change))
        return n

    def check_titles(self, session: int, events: Sequence[StoredEvent]) -> None:
        """Raise UsageError when an event sets a title that is not allowed."""
        for item in events:
            if isinstance(item.event, TitleChanged) and item.event.title:
                staged = {self.heads[other].summary.title: other for other in self._dirty}
                titles.check_free(self.db, item.event.title, session, staged)

    def _new_id(self) -> int:
        # Ids are never reused, not even after the newest records were deleted: the search index
        # relies on them.
        known = self._in_file
        if not known.last_id:
            query = (
                "SELECT max(coalesce((SELECT max(id) FROM log), 0),"
                " coalesce((SELECT value FROM meta WHERE name = 'last_removed_id'), 0))"
            )
            known.last_id = int(self.db.execute(query).fetchone()[0])
        known.last_id += 1
        return known.last_id

    def _parent(self, parent: str, parent_n: int) -> int | None:
        query = "SELECT session, parent_n FROM sessions WHERE id = ?"
        row = self.db.execute(query, (parent,)).fetchone()
        if row is None:
            if parent_n:
                raise NotFound(f"There is no session {parent} to fork.")
            return None
        self.settle()
        if parent_n > max(row[1], last_n(self.db, row[0])):
            raise UsageError(f"Session {parent} has no record {parent_n}.")
        return int(row[0])

    def _load(self, session: int) -> SessionHead:
        query = "SELECT id, parent_n FROM sessions WHERE session = ?"
        session_id, parent_n = self.db.execute(query, (session,)).fetchone()
        newest = None  # If it is lost with its page, the chain begins anew.
        with ignore_damage():
            newest = self.db.execute(_NEWEST, (session,)).fetchone()
        hash = newest[0] if newest else chain_seed(session_id)
        n = max(parent_n, last_n(self.db, session))
        summary = ledger.load(self.db, session) or ledger.rebuild_session(
            self.db, session, parent_n, session_id
        )
        return SessionHead(n, hash, summary)
