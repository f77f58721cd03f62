"""The single writer of the journal: small commits in the caller's thread when that is fast, else in
a writer thread that commits waiting jobs together."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar, cast

import msgspec

from hermes.codec.file_lock import FileLock
from hermes.core.errors import HermesError, JournalError
from hermes.core.world import World
from hermes.journal import leases
from hermes.journal.connections import is_damage, journal_error, run_in_thread
from hermes.journal.database import Checkpointer, open_for_writing
from hermes.journal.high_water import HighWaterMark
from hermes.journal.leases import LeaseOwner
from hermes.journal.repair import repair_file
from hermes.journal.transaction import FileCache, SessionHead, Transaction

log = logging.getLogger(__name__)

T = TypeVar("T")
Work = Callable[[Transaction], T]

# The most jobs per commit: in a longer queue the first would wait for the last.
GROUP = 1_024
REPAIR_SECONDS = 600.0
# With few sessions and a fast disk, a commit here is faster than waking another thread.
FEW_SESSIONS = 8
QUICK_SECONDS = 0.002
# Work that nobody waits for shares the commit of other work that comes within this time.
BACKGROUND_SECONDS = 0.02


class WriteJob(msgspec.Struct, Generic[T], eq=False):
    """Work for the writer and its outcome. Nobody waits for a background job."""

    work: Work[T]
    future: asyncio.Future[T] | None = None
    is_background: bool = False
    result: T | None = None
    error: BaseException | None = None
    is_done: bool = False

    def outcome(self) -> T:
        if self.error is not None:
            raise self.error
        return cast(T, self.result)


class Writer:
    """Writes to the journal in a thread of its own, many jobs in one transaction. The first job
    starts the thread and opens the database."""

    def __init__(self, path: Path, world: World) -> None:
        self.owner = LeaseOwner(leases.lock_folder(path.parent))
        self._path = path
        self._world = world
        self._lock = FileLock(path.with_name(f"{path.name}.lock"), is_permanent=True)
        self._checkpointer = Checkpointer(path)
        self._mark = HighWaterMark(path)
        self._place = (0, 0)
        self._heads: dict[int, SessionHead] = {}
        self._in_file = FileCache()
        self._version = -1
        self._db: sqlite3.Connection | None = None
        self._heartbeat_at = 0.0
        self._queue: SimpleQueue[WriteJob[Any] | None] = SimpleQueue()
        self._queue_lock = threading.Lock()
        self._db_lock = threading.Lock()
        self._commit_seconds = 0.0
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._repaired_at = float("-inf")
        self._is_repair_requested = False
        self._overdue: list[Work[None]] = []

    async def run(self, work: Work[T], *, is_small: bool = False) -> T:
        """Do `work` and return its result once it is committed. Failures of other work do not
        affect it. Small work may run in the caller's thread."""
        here = self._write_here(work) if is_small else None
        if here is not None:
            return here.outcome()
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._enqueue(WriteJob(work, future))
        return await future

    def run_later(self, work: Work[None]) -> None:
        """Queue work that nobody waits for. If the journal cannot be written, it is repeated at the
        beginning of the next transaction that succeeds."""
        self._enqueue(WriteJob(work, is_background=True))

    def retry(self, work: Work[None]) -> None:
        """Repeat failed work at the beginning of the next transaction that succeeds."""
        with self._queue_lock:
            self._overdue.append(work)

    async def repair(self, *, now: bool = False) -> None:
        """Check the file and repair it; with `now` even if that was tried recently."""
        self._is_repair_requested = True
        if now:
            self._repaired_at = float("-inf")
        await self.run(lambda _tx: None)

    async def close(self) -> None:
        """Write what is queued, then close the files."""
        with self._queue_lock:
            self._is_closed = True
            self._queue.put(None)
        if self._thread is not None:
            await run_in_thread(self._thread.join)

    def _enqueue(self, job: WriteJob[Any]) -> None:
        with self._queue_lock:
            if self._is_closed:
                raise JournalError("The journal is closed.")
            if self._thread is None:
                self._start()
            self._queue.put(job)

    def _write_here(self, work: Work[T]) -> WriteJob[T] | None:
        """Do the work in this thread; None when that might be slow or failed. Only while leases are
        held: then the writer thread is awake for heartbeats."""
        if not (0 < len(self._heads) <= FEW_SESSIONS and self._commit_seconds < QUICK_SECONDS):
            return None
        if self._is_closed or not self._queue.empty() or not self._db_lock.acquire(blocking=False):
            return None
        try:
            with self._lock.hold(timeout=0) as is_ours:
                if not is_ours or self._db is None or self._is_repair_requested:
                    return None
                job = WriteJob(work)
                try:
                    tx = self._commit([job])
                except Exception:
                    # Nothing was committed: the writer thread tries again and reports the error.
                    self._roll_back()
                    return None
                self._finish([job], tx)
                return job
        finally:
            self._db_lock.release()

    def _start(self) -> None:
        """Start the writer thread. Raises JournalError when the system refuses another thread."""
        thread = threading.Thread(target=self._serve, name="hermes-journal", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise JournalError(
                "The system allows no further thread, so nothing was written; "
                "raise the process limit (`ulimit -u`) or close other programs, then try again."
            ) from error
        self._thread = thread

    def _serve(self) -> None:
        """Do jobs until the item None, which is the last one."""
        is_open = True
        while is_open:
            jobs, is_open = self._next_jobs()
            self._write(jobs)
        self._checkpointer.close()
        if self._db is not None:
            with self._lock.hold():
                self._db.close()
                self._mark.close()
        self.owner.release()
        self._lock.close()

    def _next_jobs(self) -> tuple[list[WriteJob[Any]], bool]:
        """Wait for jobs or until a heartbeat is due. Also returns whether more jobs may come."""
        wait = self._seconds_to_heartbeat()
        try:
            found = [self._queue.get(timeout=None if wait is None else max(0.0, wait))]
        except Empty:
            return [], True
        found += self._waiting()
        if all(job is not None and job.is_background for job in found):
            with suppress(Empty):
                found.append(self._queue.get(timeout=BACKGROUND_SECONDS))
                found += self._waiting()
        jobs = [job for job in found if job and not (job.future and job.future.cancelled())]
        return jobs, found[-1] is not None

    def _waiting(self) -> list[WriteJob[Any] | None]:
        return [self._queue.get() for _ in range(min(GROUP, self._queue.qsize()))]

    def _seconds_to_heartbeat(self) -> float | None:
        if not self._heads:
            return None
        return self._heartbeat_at + leases.HEARTBEAT_SECONDS - self._world.clock.monotonic()

    def _write(self, jobs: Sequence[WriteJob[Any]]) -> None:
        if not jobs and self._seconds_to_heartbeat() is None:
            return
        try:
            with self._db_lock, self._lock.hold():
                self._commit_or_split(jobs)
        except Exception as error:
            # Committed jobs already have their outcome, which stays.
            log.error("the journal could not be written", extra={"error": str(error)})
            self._fail(jobs, error)

    def _commit_or_split(self, jobs: Sequence[WriteJob[Any]]) -> None:
        """Commit all jobs at once. If that fails, commit each alone, so that only the bad one
        fails."""
        try:
            tx = self._commit(jobs)
        except Exception as error:
            self._roll_back()
            if len(jobs) > 1:
                for job in jobs:
                    self._commit_or_split([job])
            elif isinstance(error, sqlite3.Error) and is_damage(error) and self._repair():
                self._commit_or_split(jobs)
            else:
                if isinstance(error, sqlite3.Error | OSError):
                    self._reopen_later()
                self._fail(jobs, error)
        else:
            self._finish(jobs, tx)

    def _finish(self, jobs: Sequence[WriteJob[Any]], tx: Transaction | None) -> None:
        """Do the work after COMMIT. A failure here is logged and nothing more: the jobs are
        durable, and writing them again would double them."""
        steps: list[Callable[[], None]] = []
        if tx is not None:
            self._update_heads(tx)
            steps.append(partial(self._world.kill_point, "journal.after_commit"))
        # Callers continue as soon as they have their result; the rest is maintenance.
        steps += [partial(_deliver, jobs), partial(self._maintain, tx)]
        for step in steps:
            try:
                step()
            except Exception:
                log.exception("the work after a commit failed")

    def _fail(self, jobs: Sequence[WriteJob[Any]], error: BaseException) -> None:
        if isinstance(error, sqlite3.Error | OSError):
            error = journal_error(error, self._path)
        unfinished = [job for job in jobs if not job.is_done]
        for job in unfinished:
            job.error = error
            if job.is_background:
                self.retry(job.work)
        _deliver(unfinished)

    def _commit(self, jobs: Sequence[WriteJob[Any]]) -> Transaction | None:
        """Do the jobs in one transaction; None when they changed nothing. If this raises, nothing
        was committed."""
        if self._is_repair_requested:
            self._is_repair_requested = False
            self._repair()
        if self._db is None:
            self._db = open_for_writing(self._path)
            self._checkpointer.begin(self._db)
            self._mark.check(self._db)
            self._place = self._find_place()
        elif self._find_place() != self._place:
            raise JournalError(
                f"{self._path} was deleted or replaced while Hermes was running, so nothing more "
                "can be stored; start Hermes again."
            )
        is_beat_due = self._is_heartbeat_due()
        self._db.execute("BEGIN IMMEDIATE")
        # Cached knowledge of the file is valid while no other process writes it.
        version = int(self._db.execute("PRAGMA data_version").fetchone()[0])
        if version != self._version:
            self._version = version
            self._in_file.forget()
        changes = self._db.total_changes
        tx = Transaction(self._db, self._heads, self._in_file, self.owner.name)
        tx.overdue = tuple(self._overdue)
        for work in tx.overdue:
            work(tx)
        for job in jobs:
            try:
                job.error, job.result = None, job.work(tx)
            except HermesError as error:
                job.error = error
        tx.settle()
        if is_beat_due:
            leases.write_heartbeat(tx, self.owner, self._world.clock.now())
        if self._db.total_changes == changes:
            self._db.execute("ROLLBACK")
            return None
        self._world.kill_point("journal.before_commit")
        started = time.perf_counter()
        self._db.execute("COMMIT")
        self._commit_seconds = 0.7 * self._commit_seconds + 0.3 * (time.perf_counter() - started)
        return tx

    def _find_place(self) -> tuple[int, int]:
        """Return what tells the file from another one with its name."""
        try:
            found = self._path.stat()
        except OSError:
            return (0, 0)
        return (found.st_dev, found.st_ino)

    def _is_heartbeat_due(self) -> bool:
        """Whether a heartbeat is due: from half the interval on, it shares the commit of other
        work."""
        wait = self._seconds_to_heartbeat()
        if wait is None or wait > leases.HEARTBEAT_SECONDS / 2:
            return False
        # Counted even if the commit fails: a full disk is not retried at once.
        self._heartbeat_at = self._world.clock.monotonic()
        return True

    def _update_heads(self, tx: Transaction) -> None:
        if tx.taken:
            self._heartbeat_at = self._world.clock.monotonic()
        for session, head in tx.heads.items():
            if session in tx.taken or session in self._heads:
                self._heads[session] = head
        for session in tx.freed:
            self._heads.pop(session, None)
        if tx.overdue:
            with self._queue_lock:
                del self._overdue[: len(tx.overdue)]

    def _maintain(self, tx: Transaction | None) -> None:
        if tx is not None:
            self._checkpointer.count(rows_bytes=tx.written_bytes, sessions=len(tx.heads))
        if self._db:
            if tx is not None:
                self._mark.update(self._db)
            self._checkpointer.finish(self._db)

    def _roll_back(self) -> None:
        self._in_file.forget()
        try:
            if self._db is not None and self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error:
            self._reopen_later()

    def _repair(self) -> bool:
        """Whether damage was repaired, so that a retry makes sense. At most every ten minutes: a
        hopeless repair is not repeated forever."""
        now = self._world.clock.monotonic()
        if now - self._repaired_at < REPAIR_SECONDS:
            return False
        self._repaired_at = now
        self._reopen_later()
        try:
            return repair_file(self._path, self._world.clock.now())
        except (sqlite3.Error, OSError) as failure:
            log.error("the journal could not be repaired", extra={"error": str(failure)})
            return False

    def _reopen_later(self) -> None:
        """Do not reuse a connection after a disk error."""
        self._in_file.forget()
        self._version = -1
        if self._db is not None:
            self._db.close()
            self._db = None


def _deliver(jobs: Sequence[WriteJob[Any]]) -> None:
    """Pass the outcomes to the waiting event loops, one wake-up per loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[WriteJob[Any]]] = {}
    for job in jobs:
        job.is_done = True
        if job.is_background and job.error is not None:
            log.warning("background work of the journal failed", extra={"error": str(job.error)})
        if job.future is not None:
            by_loop.setdefault(job.future.get_loop(), []).append(job)
    for loop, mine in by_loop.items():
        # In a closed loop nobody waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_resolve, mine)


def _resolve(jobs: Sequence[WriteJob[Any]]) -> None:
    for job in jobs:
        if job.future is None or job.future.done():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)
