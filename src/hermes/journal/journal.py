"""The journal: the append-only source of truth for all sessions of a home, in one SQLite file."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from hermes.core.caps import NO_CAPS, Caps
from hermes.core.commands import Command
from hermes.core.errors import JournalError, UsageError
from hermes.core.events import DurableEvent, ModelCalled, Record, SessionOpened
from hermes.core.messages import Usage
from hermes.core.ports import InboxCommand, Lease
from hermes.core.world import World
from hermes.journal import leases, schema
from hermes.journal.body_templates import StoredEvent, encode_event
from hermes.journal.connections import ReaderPool, is_damage, open_reader
from hermes.journal.leases import mark_taken, post_command, waiting_commands
from hermes.journal.reading import PAGE_DAMAGE, DamagedRecord, quarantine, read_session
from hermes.journal.reservations import reserve_call
from hermes.journal.transaction import Transaction
from hermes.journal.writer import Writer

log = logging.getLogger(__name__)

T = TypeVar("T")

SMALL = 16


class SqliteJournal:
    """The journal (`core.ports.Journal`) in SQLite on one machine, for any number of processes. The
    constructor does nothing: files are opened and the writer thread starts on first use."""

    def __init__(self, path: Path, world: World) -> None:
        self.path = path
        self.world = world
        self.writer = Writer(path, world)
        self._readers = ReaderPool(path)
        self._probe: sqlite3.Connection | None = None
        self._is_ready = False

    async def __aenter__(self) -> SqliteJournal:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish pending writes and release all leases."""
        if self._probe is not None:
            self._probe.close()
        self._readers.close()
        await self.writer.close()

    async def create(
        self, session_id: str, events: Sequence[DurableEvent], *, turn_id: str = ""
    ) -> tuple[Lease, tuple[Record, ...]]:
        opening = events[0] if events else None
        if not isinstance(opening, SessionOpened):
            raise UsageError("A session begins with SessionOpened.")
        items, now = encode_events(events), self.world.clock.now()

        def work(tx: Transaction) -> tuple[Lease, tuple[int, ...]]:
            tx.check_titles(0, items)
            session = tx.create(session_id, parent=opening.parent, parent_n=opening.parent_n)
            lease = leases.take_lease(tx, session, session_id, self.writer.owner, now)
            return lease, tx.write(session, items, turn_id=turn_id, at=now)

        lease, numbers = await self.writing(work)
        return lease, _records(session_id, events, numbers, turn_id, now)

    async def acquire(self, session_id: str) -> Lease:
        def work(tx: Transaction) -> Lease:
            owner, now = self.writer.owner, self.world.clock.now()
            session = tx.session(session_id)
            leases.check_available(tx, session, session_id, owner, now)
            return leases.take_lease(tx, session, session_id, owner, now)

        return await self.writing(work)

    async def release(self, lease: Lease, *, soon: bool = False) -> None:
        def work(tx: Transaction) -> None:
            leases.release_lease(tx, lease)

        if soon:
            self.writer.run_later(work)
            return
        try:
            await self.writing(work)
        except JournalError as error:
            # A full disk must not keep the session busy for ever.
            log.warning("the lease is released later", extra={"error": str(error)})
            self.writer.retry(work)

    async def append(
        self, lease: Lease, events: Sequence[DurableEvent], *, turn_id: str = ""
    ) -> tuple[Record, ...]:
        items, now = encode_events(events), self.world.clock.now()

        def work(tx: Transaction) -> tuple[int, ...]:
            return tx.write(tx.check_lease(lease), items, turn_id=turn_id, at=now)

        numbers = await self.writing(work, is_small=len(items) <= SMALL)
        return _records(lease.session_id, events, numbers, turn_id, now)

    async def book(
        self,
        lease: Lease,
        events: Sequence[DurableEvent],
        call: ModelCalled,
        *,
        least: Usage,
        caps: Caps,
        turn_id: str = "",
    ) -> tuple[Record, ...]:
        if caps == NO_CAPS:
            return await self.append(lease, (*events, call), turn_id=turn_id)
        items, now = encode_events(events), self.world.clock.now()

        def work(tx: Transaction) -> tuple[ModelCalled, tuple[int, ...]]:
            session = tx.check_lease(lease)
            granted = reserve_call(tx, session, items, call, least, caps, turn_id=turn_id, at=now)
            written = [*items, encode_event(granted)]
            return granted, tx.write(session, written, turn_id=turn_id, at=now)

        granted, numbers = await self.writing(work, is_small=len(items) < SMALL)
        return _records(lease.session_id, (*events, granted), numbers, turn_id, now)

    async def read(self, session_id: str, *, after: int = 0) -> tuple[Record, ...]:
        """Return the records of a session. Shared records of a fork keep the id of the session that
        stores them."""
        work = partial(read_session, session_id=session_id, after=after)
        records, lost = await self.reading(work)
        if any(item.record.why.startswith(PAGE_DAMAGE) for item in lost):
            await self.writer.repair()
            records, lost = await self.reading(work)
        await self.set_aside(lost)
        return tuple(records)

    async def post(self, session_id: str, command: Command, *, key: str = "") -> None:
        now = self.world.clock.now()
        await self.writing(lambda tx: post_command(tx, session_id, command, key, now))

    async def pending_commands(self, lease: Lease) -> tuple[InboxCommand, ...]:
        return await self.reading(lambda db: waiting_commands(db, lease))

    async def acknowledge(self, lease: Lease, ids: Sequence[int]) -> None:
        now = self.world.clock.now()
        await self.writing(lambda tx: mark_taken(tx, lease, ids, now))

    def data_version(self) -> int:
        """Return a number that changes with every commit of another process; -1 before the file
        exists. While it stays the same, `pending_commands` finds nothing new. Takes microseconds,
        without disk access."""
        if self._probe is None:
            if not self.path.exists():
                return -1
            self._probe = open_reader(self.path)
        return int(self._probe.execute("PRAGMA data_version").fetchone()[0])

    async def reading(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on a read connection in another thread."""
        if not self._is_ready:
            await self._make_ready()
        try:
            return await self._readers.run(work)
        except JournalError as error:
            cause = error.__cause__
            if not isinstance(cause, sqlite3.Error) or not is_damage(cause):
                raise
        await self.writer.repair()
        return await self._readers.run(work)

    async def writing(self, work: Callable[[Transaction], T], *, is_small: bool = False) -> T:
        """Run `work` in the writer's next transaction; durable when it returns."""
        result = await self.writer.run(work, is_small=is_small)
        self._is_ready = True
        return result

    async def set_aside(self, lost: Sequence[DamagedRecord]) -> None:
        """Quarantine damaged records, if the disk allows it."""
        if not lost:
            return
        now = self.world.clock.now()
        try:
            await self.writing(lambda tx: quarantine(tx.db, lost, now))
        except JournalError as error:
            log.warning("damaged records could not be quarantined", extra={"error": str(error)})

    async def _make_ready(self) -> None:
        """Have the writer create or repair the file if necessary."""
        try:
            is_current = await self._readers.run(schema.is_current)
        except JournalError:
            is_current = False
        if not is_current:
            await self.writer.run(lambda _tx: None)
        self._is_ready = True


def encode_events(events: Sequence[DurableEvent]) -> list[StoredEvent]:
    try:
        return [encode_event(event) for event in events]
    except UnicodeError as error:
        raise JournalError(
            f"Nothing was written, because an event cannot be stored: {error}."
        ) from error


def _records(
    session_id: str,
    events: Sequence[DurableEvent],
    numbers: Sequence[int],
    turn_id: str,
    at: float,
) -> tuple[Record, ...]:
    return tuple(
        Record(session_id=session_id, n=n, turn_id=turn_id, at=at, event=event)
        for event, n in zip(events, numbers, strict=True)
        if n
    )
