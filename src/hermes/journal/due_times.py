"""The due times of scheduled jobs: each is claimed by one process and runs once."""

from __future__ import annotations

from typing import Any, Literal

from hermes.codec.values import Value
from hermes.journal import leases
from hermes.journal.journal import SqliteJournal
from hermes.journal.transaction import Transaction

DueState = Literal["claimed", "running", "completed", "failed", "unknown", "skipped"]
"""`unknown`: the process died while the work ran, and it cannot be repeated safely."""


class DueTime(Value):
    """One run of a job. It is open while `ended_at` is None."""

    id: int
    job: str
    due_at: float
    owner: str
    state: DueState
    session_id: str
    claimed_at: float
    started_at: float | None
    ended_at: float | None
    error: str
    # What became of the output: where it was delivered, or why not.
    delivery: str


class DueTimes:
    """The table `due_times`. Changes are durable when they return."""

    def __init__(self, journal: SqliteJournal) -> None:
        self._journal = journal
        self._clock = journal.world.clock

    @property
    def owner(self) -> str:
        """This process, as it appears in the rows that it claims."""
        return self._journal.writer.owner.name

    async def claim(self, job: str, due_at: float, *, session_id: str = "") -> bool:
        """Claim a due time. False when it was claimed before, by this process or another."""
        now = self._clock.now()

        def work(tx: Transaction) -> bool:
            owner = self._journal.writer.owner
            if not owner.holds_lock:
                owner.hold_lock()
            done = tx.db.execute(
                "INSERT INTO due_times(job, due_at, owner, state, session_id, claimed_at)"
                " VALUES (?, ?, ?, 'claimed', ?, ?) ON CONFLICT DO NOTHING",
                (job, due_at, owner.name, session_id, now),
            )
            return done.rowcount > 0

        return await self._journal.writing(work)

    async def take_over(self) -> tuple[DueTime, ...]:
        """Claim the open due times of processes that no longer live."""

        def work(tx: Transaction) -> tuple[DueTime, ...]:
            owner = self._journal.writer.owner
            query = "SELECT * FROM due_times WHERE ended_at IS NULL AND owner <> ? ORDER BY id"
            found = [_due_time(row) for row in tx.db.execute(query, (owner.name,))]
            owners = {each.owner for each in found}
            dead = {name for name in owners if not leases.is_alive(owner.folder, name)}
            taken = tuple(each for each in found if each.owner in dead)
            if taken and not owner.holds_lock:
                owner.hold_lock()
            for each in taken:
                statement = "UPDATE due_times SET owner = ? WHERE id = ?"
                tx.db.execute(statement, (owner.name, each.id))
            return taken

        return await self._journal.writing(work)

    async def start(self, job: str, due_at: float) -> None:
        """The work begins now."""
        await self._set(job, due_at, "state = 'running', started_at = ?", self._clock.now())

    async def end(
        self, job: str, due_at: float, state: DueState, *, error: str = "", delivery: str = ""
    ) -> None:
        change = "state = ?, error = ?, delivery = ?, ended_at = ?"
        await self._set(job, due_at, change, state, error, delivery, self._clock.now())

    async def set_delivery(self, job: str, due_at: float, delivery: str) -> None:
        await self._set(job, due_at, "delivery = ?", delivery)

    async def skip(self, job: str, due_at: float, reason: str) -> bool:
        """Record that a due time is not executed. False when it was claimed before."""
        now = self._clock.now()
        row = (job, due_at, self.owner, now, now, reason)

        def work(tx: Transaction) -> bool:
            done = tx.db.execute(
                "INSERT INTO due_times(job, due_at, owner, state, claimed_at, ended_at, error)"
                " VALUES (?, ?, ?, 'skipped', ?, ?, ?) ON CONFLICT DO NOTHING",
                row,
            )
            return done.rowcount > 0

        return await self._journal.writing(work)

    async def history(self, job: str = "", *, limit: int = 20) -> tuple[DueTime, ...]:
        """The newest runs first; of all jobs with ""."""
        where, values = ("WHERE job = ?", (job,)) if job else ("", ())
        query = f"SELECT * FROM due_times {where} ORDER BY id DESC LIMIT ?"
        return await self._journal.reading(
            lambda db: tuple(_due_time(row) for row in db.execute(query, (*values, limit)))
        )

    async def open_runs(self) -> tuple[DueTime, ...]:
        query = "SELECT * FROM due_times WHERE ended_at IS NULL ORDER BY id"
        return await self._journal.reading(
            lambda db: tuple(_due_time(row) for row in db.execute(query))
        )

    async def prune(self, *, keep_seconds: float) -> None:
        oldest = self._clock.now() - keep_seconds

        def work(tx: Transaction) -> None:
            tx.db.execute("DELETE FROM due_times WHERE ended_at < ?", (oldest,))

        await self._journal.writing(work)

    async def _set(self, job: str, due_at: float, change: str, *values: object) -> None:
        statement = f"UPDATE due_times SET {change} WHERE job = ? AND due_at = ?"

        def work(tx: Transaction) -> None:
            tx.db.execute(statement, (*values, job, due_at))

        await self._journal.writing(work)


def _due_time(row: tuple[Any, ...]) -> DueTime:
    return DueTime(**dict(zip(DueTime.__struct_fields__, row, strict=True)))
