"""Opens sessions on demand, runs turns in them, and closes them when no run needs them."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from sqlite3 import Connection

from hermes.app.app import App
from hermes.core.commands import Answer, Command, Interrupt, Say, Steer, SwitchModel
from hermes.core.errors import HermesError, NotFound, SessionBusy
from hermes.core.events import SessionOpened
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.hosting.request import TurnRequest, may_use, message_text, resume_request
from hermes.hosting.run import Run, RunListener
from hermes.surfaces.api.http import HttpError
from hermes.surfaces.api.store import ApiStore

BUSY_SECONDS = 300.0


class SessionSlot:
    def __init__(self) -> None:
        self.open_lock = asyncio.Lock()
        self.turn_lock = asyncio.Lock()
        self.users = 0
        self.session: Session | None = None


async def acquire_turn(seat: SessionSlot) -> None:
    """HttpError 409 when another request holds the session too long."""
    try:
        async with asyncio.timeout(BUSY_SECONDS):
            await seat.turn_lock.acquire()
    except TimeoutError as error:
        words = "Another request is using this session; try again later."
        raise HttpError(409, "session_busy", words) from error


log = logging.getLogger(__name__)

SESSION_ID = r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}"
RUN_ID = rf"run_({SESSION_ID})_[0-9a-f]{{12}}"

OnEnd = Callable[[Run], Awaitable[None]]


class SessionPool:
    def __init__(self, app: App, store: ApiStore, *, most_runs: int) -> None:
        self._app = app
        self._store = store
        self._max_runs = most_runs
        self._slots: dict[str, SessionSlot] = {}
        self._runs: dict[str, Run] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._claims: set[str] = set()
        self._busy: Counter[str] = Counter()
        self.is_draining = False
        self.endings: dict[str, int] = {}
        self.started = 0

    @property
    def active(self) -> int:
        return len(self._tasks)

    @property
    def open_sessions(self) -> int:
        return sum(seat.session is not None for seat in self._slots.values())

    @property
    def queued(self) -> int:
        """Runs that wait for their turn."""
        return sum(run.status == "queued" for run in self._runs.values())

    async def processes(self) -> int:
        """The number of running background processes in open sessions."""
        opened = [seat.session for seat in self._slots.values() if seat.session is not None]
        found = [await session.workspace.processes.list() for session in opened]
        return sum(process.status == "running" for each in found for process in each)

    def new_session_id(self) -> str:
        """Has more random bits than usual: hundreds of sessions may open in the same second."""
        world = self._app.run.world
        return f"{world.new_session_id()}{world.chance.getrandbits(40):010x}"

    def new_run_id(self, session_id: str) -> str:
        """The id contains the session's, so that the journal alone can restore a run."""
        return f"run_{session_id}_{self._app.run.world.chance.getrandbits(48):012x}"

    def admit(self) -> None:
        """HttpError when the server stops or runs as many turns as it may."""
        if self.is_draining:
            words = "The server is shutting down."
            raise HttpError(503, "draining", words, headers=((b"retry-after", b"5"),))
        if self._max_runs and self.active >= self._max_runs:
            words = f"{self._max_runs} turns are running, which is the maximum."
            raise HttpError(429, "too_many_runs", words, headers=((b"retry-after", b"5"),))

    def claim(self, session_id: str) -> bool:
        """Reserve the session for the next run; False when another run has it."""
        if session_id in self._claims or self._busy[session_id]:
            return False
        self._claims.add(session_id)
        return True

    def release_claim(self, session_id: str) -> None:
        self._claims.discard(session_id)

    async def start_run(
        self, run_id: str, errand: TurnRequest, *, kept: bool = False, on_end: OnEnd | None = None
    ) -> Run:
        """Start a run; returns when its message is durable. `kept` runs resume after a restart."""
        if (running := self._runs.get(run_id)) is not None:
            return running
        try:
            self.admit()
            run = Run(run_id, errand.session_id, self._app.run.world.clock.now())
            run.is_persistent = kept
            self._runs[run_id] = run
            if kept:
                await self._store.run(lambda db: _insert_run(db, run), durable=True)
        except BaseException:
            self._runs.pop(run_id, None)
            self.release_claim(errand.session_id)
            raise
        self._start(run, errand, on_end)
        await run.wait_accepted()
        return run

    async def find_run(self, run_id: str) -> Run:
        """An active or past run; HttpError 404."""
        if (run := self._runs.get(run_id)) is not None:
            return run
        match = re.fullmatch(RUN_ID, run_id, re.ASCII)
        if match is None:
            raise HttpError(404, "run_not_found", "There is no such run.")
        try:
            run = await self._load_run(run_id, match[1])
        except NotFound as error:
            raise HttpError(404, "run_not_found", "There is no such run.") from error
        if not run.records:
            raise HttpError(404, "run_not_found", "There is no such run.")
        return self._runs.get(run_id, run)

    def resume_run(self, run: Run) -> Run:
        """Resume a run that has not ended and is not active."""
        if run.is_over or run.id in self._runs:
            return self._runs.get(run.id, run)
        again = Run(run.id, run.session_id, run.created_at)
        self._start(again, resume_request(run.session_id), None)
        return again

    async def resume_all(self) -> None:
        """Resume the runs that the last process left unfinished."""
        ids = await self._store.run(
            lambda db: [id for (id,) in db.execute("SELECT id FROM runs ORDER BY at")]
        )
        for run_id in ids:
            match = re.fullmatch(RUN_ID, run_id, re.ASCII)
            if match is not None and run_id not in self._runs:
                run = Run(run_id, match[1], self._app.run.world.clock.now())
                run.is_persistent = True
                self._start(run, resume_request(match[1]), None)

    async def stop_run(self, run: Run) -> None:
        run.is_stopping = True
        if run.turn_id:
            await self.send(run, Interrupt())

    async def send(self, run: Run, command: Command) -> None:
        """Send a command to the session of a run, also if another process has it open."""
        if run.session is not None:
            await run.session.send(command)
        else:
            await self._app.journal.post(run.session_id, command)

    async def answer(self, run: Run, asked_id: str, text: str, by: str, reason: str = "") -> None:
        await self.send(run, Answer(id=asked_id, text=text, by=by, reason=reason))

    async def steer(self, run: Run, text: str) -> None:
        await self.send(run, Steer(text=text))

    async def drain(self, seconds: float) -> None:
        """Refuse new runs, wait for active ones, then interrupt the rest."""
        self.is_draining = True
        if self._tasks:
            await asyncio.wait(tuple(self._tasks.values()), timeout=seconds)
        for run in tuple(self._runs.values()):
            if not run.is_over:
                await self.stop_run(run)
        if self._tasks:
            await asyncio.wait(tuple(self._tasks.values()), timeout=5)
        for task in tuple(self._tasks.values()):
            task.cancel()

    @asynccontextmanager
    async def exclusive(self, session_id: str) -> AsyncIterator[None]:
        """No turn of this process runs in the session meanwhile; HttpError 409 after a timeout."""
        seat = self._acquire_slot(session_id)
        try:
            await acquire_turn(seat)
            try:
                yield
            finally:
                seat.turn_lock.release()
        finally:
            await self._release_slot(session_id, seat)

    @asynccontextmanager
    async def pinned(self, session_id: str) -> AsyncIterator[None]:
        """The session is neither opened nor closed here meanwhile. An open session processes its
        inbox at the end."""
        seat = self._acquire_slot(session_id)
        try:
            async with seat.open_lock:
                yield
                if seat.session is not None:
                    await seat.session.check_inbox()
        finally:
            await self._release_slot(session_id, seat)

    def _start(self, run: Run, errand: TurnRequest, on_end: OnEnd | None) -> None:
        self._runs[run.id] = run
        self._busy[run.session_id] += 1
        self.started += 1
        task = asyncio.ensure_future(self._execute(run, errand, on_end))
        self._tasks[run.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(run.id, None))

    async def _execute(self, run: Run, errand: TurnRequest, on_end: OnEnd | None) -> None:
        """Execute a run; its readers always get an end or an error."""
        try:
            await self._run_turn(run, errand, on_end)
        except asyncio.CancelledError:
            run.fail(HttpError(503, "draining", "The server was stopped."))
            raise
        except Exception as error:
            if not isinstance(error, HermesError | HttpError):
                log.exception("a run crashed")
            run.fail(error)
        finally:
            self._settle(run)
            self.endings[run.status] = self.endings.get(run.status, 0) + 1
            self._runs.pop(run.id, None)
            # A run that failed without a TurnEnded resumes after a restart.
            if run.is_persistent and run.ended is not None:
                await self._forget(run)

    async def _run_turn(self, run: Run, errand: TurnRequest, on_end: OnEnd | None) -> None:
        seat = self._acquire_slot(errand.session_id)
        has_turn = False
        try:
            if errand.alone:
                await acquire_turn(seat)
                has_turn = True
            while not run.is_over:
                try:
                    session = await self._open(seat, errand)
                except SessionBusy:
                    await self._follow_remote(run, errand)
                else:
                    await self._follow(run, session, errand)
            if on_end is not None and run.ended is not None:
                await self._finish(run, on_end)
            self._settle(run)
        finally:
            if has_turn:
                seat.turn_lock.release()
            await self._release_slot(errand.session_id, seat)

    async def _finish(self, run: Run, on_end: OnEnd) -> None:
        """A store that fails does not lose the answer of a turn that has ended."""
        try:
            await on_end(run)
        except HermesError as error:
            log.error("the end of a run was not stored", extra={"error": str(error)})

    async def _forget(self, run: Run) -> None:
        try:
            await self._store.run(lambda db: _delete_run(db, run))
        except HermesError as error:
            log.error("a finished run is still stored", extra={"error": str(error)})

    def _settle(self, run: Run) -> None:
        """Release the session and wake everyone who waits for the run to end."""
        if run.settled.is_set():
            return
        self.release_claim(run.session_id)
        self._busy[run.session_id] -= 1
        if not self._busy[run.session_id]:
            del self._busy[run.session_id]
        run.settled.set()

    async def _open(self, seat: SessionSlot, errand: TurnRequest) -> Session:
        async with seat.open_lock:
            if seat.session is None:
                opening = await self._opening(errand)
                # Many sessions that open at once must not block the event loop.
                await self._app.run.world.pacer.turn()
                seat.session = await self._app.open(opening)
                if errand.past and not seat.session.transcript.messages:
                    await seat.session.import_messages(errand.past)
            opened = seat.session.transcript.opened
            if opened is not None and not may_use(errand, opened):
                raise NotFound(f"There is no session {errand.session_id}.")
            return seat.session

    async def _opening(self, errand: TurnRequest) -> SessionRequest:
        is_new = errand.create == "always" or (
            errand.create == "if_missing" and await self._is_missing(errand.session_id)
        )
        return SessionRequest(
            source=errand.source,
            platform="api",
            attended=errand.attended,
            principal="member" if errand.confined else "owner",
            resume="" if is_new else errand.session_id,
            session_id=errand.session_id if is_new else "",
            extra=errand.extra if is_new else "",
            person=errand.person,
            toolsets=errand.toolsets if is_new else (),
        )

    async def _is_missing(self, session_id: str) -> bool:
        try:
            await self._app.archive.info(session_id)
        except NotFound:
            return True
        return False

    async def _follow(self, run: Run, session: Session, errand: TurnRequest) -> None:
        ear = RunListener(run)
        session.attach(ear)
        run.session = session
        settled: asyncio.Future[None] | None = None
        try:
            if not await self._send_message(run, session, errand):
                return
            run.mark_accepted()
            settled = asyncio.ensure_future(session.wait_until_idle())
            settled.add_done_callback(ear.settle)
            while not run.is_over:
                await ear.bell.wait()
                if ear.is_closed and not run.is_over:
                    run.fail(HermesError("The session was closed before the turn ended."))
                elif run.is_stopping and run.turn_id and not run.is_over:
                    await session.send(Interrupt())
            run.message_count = len(session.transcript.messages)
        finally:
            run.session = None
            session.detach(ear)
            if settled is not None:
                settled.cancel()

    async def _send_message(self, run: Run, session: Session, errand: TurnRequest) -> bool:
        """Whether there is a turn to follow."""
        if errand.again:
            run.apply_all(await self._app.archive.records(run.session_id))
        if run.is_over:
            return False
        if run.records:
            session.resume()
            return True
        if not errand.text and not errand.images:
            raise NotFound("This run has no message.")
        transcript = session.transcript
        if errand.model and (errand.model, errand.provider) != (
            transcript.model,
            transcript.provider,
        ):
            await session.send(SwitchModel(model=errand.model, provider=errand.provider))
        tuned = self._app.controls[session.id]
        effort, tier, now = errand.effort or None, errand.tier or None, session.transcript.tuned
        if (effort, tier) != (now.effort, now.tier):
            await session.send(tuned.change(effort=effort, tier=tier))
        opened = transcript.opened
        text = message_text(errand, opened.system if opened else "")
        await session.send(Say(text=text, images=errand.images, key=run.id))
        return True

    async def _follow_remote(self, run: Run, errand: TurnRequest) -> None:
        """Another process owns the session: post the message to its inbox and follow the turn in
        the journal. Returns without an end when that process exits."""
        records = await self._app.archive.records(errand.session_id)
        opened = records[0].event if records else None
        if isinstance(opened, SessionOpened) and not may_use(errand, opened):
            raise NotFound(f"There is no session {errand.session_id}.")
        opening = SessionRequest(source=errand.source, attended=False, resume=errand.session_id)
        say = Say(text=message_text(errand, ""), images=errand.images, key=run.id)
        followed = await self._app.post_message(opening, say)
        run.mark_accepted()
        async with aclosing(followed):
            async for record in followed:
                run.apply(record)

    async def _load_run(self, run_id: str, session_id: str) -> Run:
        run = Run(run_id, session_id, 0.0)
        run.apply_all(await self._app.archive.records(session_id))
        if run.records:
            run.created_at = run.records[0].at
        if run.is_over:
            run.settled.set()
        return run

    async def _release_slot(self, session_id: str, seat: SessionSlot) -> None:
        seat.users -= 1
        if seat.users == 0 and seat.session is not None:
            session, seat.session = seat.session, None
            # A new user waits at the lock until the session can be opened again.
            async with seat.open_lock:
                await self._app.run.world.pacer.turn()
                await self._app.close_session(session, soon=True)
        if seat.users == 0 and seat.session is None and not seat.open_lock.locked():
            self._slots.pop(session_id, None)

    def _acquire_slot(self, session_id: str) -> SessionSlot:
        seat = self._slots.setdefault(session_id, SessionSlot())
        seat.users += 1
        return seat


def _insert_run(db: Connection, run: Run) -> None:
    db.execute("INSERT OR IGNORE INTO runs VALUES (?, ?)", (run.id, run.created_at))


def _delete_run(db: Connection, run: Run) -> None:
    db.execute("DELETE FROM runs WHERE id = ?", (run.id,))
