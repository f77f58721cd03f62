"""Runs turns in pooled sessions, and finds and continues their runs after a restart."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress

from hermes.app.app import App
from hermes.app.session_builder import AdaptDeps
from hermes.codec.values import replace
from hermes.core.commands import Command, Interrupt, Retitle, Say, SwitchModel
from hermes.core.errors import HermesError, NotFound, RunNotFound, SessionBusy, UsageError
from hermes.core.events import SessionOpened
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.credentials.event_redactor import SecretEventRedactor
from hermes.hosting.admission import Admission, AdmissionTicket, draining_error
from hermes.hosting.process_notices import ProcessNotices
from hermes.hosting.request import (
    TurnRequest,
    continuation_request,
    may_use,
    message_text,
    send_message,
)
from hermes.hosting.run import Run, RunListener, session_of
from hermes.hosting.session_pool import SessionPool, SessionSlot
from hermes.hosting.store import HostingStore

log = logging.getLogger(__name__)

INTERRUPT_SECONDS = 5.0
CANCELLED_RUNS = 1_000

OnEnd = Callable[[Run], Awaitable[None]]


class RunExecutor:
    """Executes runs. `platform` is the platform of the sessions that it opens; `store` is needed
    for persistent runs. With `follows_processes`, notices of background processes become runs.
    `adapt` may replace dependencies of the sessions."""

    def __init__(
        self,
        app: App,
        pool: SessionPool,
        admission: Admission,
        *,
        platform: str,
        store: HostingStore | None = None,
        follows_processes: bool = False,
        adapt: AdaptDeps | None = None,
    ) -> None:
        self._app = app
        self._pool = pool
        self._admission = admission
        self._platform = platform
        self._store = store
        self._notices = ProcessNotices(pool, self._run_internally) if follows_processes else None
        self._adapt = adapt
        self._runs: dict[str, Run] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        # Runs that were stopped before their turn; the journal does not know them.
        self._cancelled: deque[Run] = deque(maxlen=CANCELLED_RUNS)
        self._claims: set[str] = set()
        self._busy: Counter[str] = Counter()
        self.endings: Counter[str] = Counter()
        self.started = 0

    @property
    def queued(self) -> int:
        """Runs whose turn has not started."""
        return sum(run.status == "queued" for run in self._runs.values())

    def active_runs(self, session_id: str) -> tuple[str, ...]:
        """The ids of the runs of a session that have not ended."""
        return tuple(run.id for run in self._runs.values() if run.session_id == session_id)

    def new_session_id(self) -> str:
        """A session id with more random bits than usual, because hundreds of sessions may open in
        the same second."""
        world = self._app.context.world
        return f"{world.new_session_id()}{world.chance.getrandbits(40):010x}"

    def new_run_id(self, session_id: str) -> str:
        """A run id. It contains the session id, so that the journal alone can restore a run."""
        return f"run_{session_id}_{self._app.context.world.chance.getrandbits(48):012x}"

    def claim(self, session_id: str) -> bool:
        """Reserve the session for the next run; False when another run has it."""
        if session_id in self._claims or self._busy[session_id]:
            return False
        self._claims.add(session_id)
        return True

    def release_claim(self, session_id: str) -> None:
        self._claims.discard(session_id)

    async def start(
        self,
        run_id: str,
        request: TurnRequest,
        *,
        persistent: bool = False,
        on_end: OnEnd | None = None,
    ) -> Run:
        """Start a run; returns when its message is durable. Raises AdmissionRefused. A persistent
        run continues after a restart; while it waits for capacity its request is durable, so that
        this returns before its turn starts. `on_end` is called before `run.settled` is set."""
        if (running := self._runs.get(run_id)) is not None:
            return running
        try:
            ticket = self._admission.enter(request.client)
        except BaseException:
            self.release_claim(request.session_id)
            raise
        run = Run(run_id, request.session_id, self._app.context.world.clock.now())
        run.is_persistent = persistent
        self._runs[run_id] = run
        if persistent:
            assert self._store is not None
            try:
                redactor = SecretEventRedactor(self._app.shared.redactor)
                # The request as the journal would store it.
                redacted = replace(
                    request,
                    text=redactor.redact_new_text(request.text),
                    instructions=redactor.redact_new_text(request.instructions),
                    history=tuple(redactor.redact_stored(message) for message in request.history),
                )
                await self._store.add_run(run, redacted)
            except BaseException:
                del self._runs[run_id]
                ticket.release()
                self.release_claim(request.session_id)
                raise
        self._launch(run, request, ticket, on_end)
        await run.wait_accepted()
        return run

    async def create_session(self, request: TurnRequest, title: str) -> None:
        """Store a new session without a message. A title that is taken gets a number."""
        slot = self._pool.acquire(request.session_id)
        try:
            session = await self._open(slot, request)
            await session.send(Retitle(title=await self._app.archive.free_title(title)))
        finally:
            await self._pool.release(slot)

    async def find(self, run_id: str) -> Run:
        """An active or past run; raises RunNotFound."""
        if (run := self._runs.get(run_id)) is not None:
            return run
        if (run := next((each for each in self._cancelled if each.id == run_id), None)) is not None:
            return run
        run = Run(run_id, session_of(run_id), 0.0)
        with suppress(NotFound):
            if run.session_id:
                run.apply_all(await self._app.archive.records(run.session_id))
        if not run.records:
            raise RunNotFound("There is no such run.")
        run.created_at = run.records[0].at
        if run.is_over:
            run.settled.set()
        return self._runs.get(run_id, run)

    def continue_run(self, run: Run) -> Run:
        """Continue a run that has not ended and is not active."""
        if run.is_over or run.id in self._runs:
            return self._runs.get(run.id, run)
        again = Run(run.id, run.session_id, run.created_at)
        self._launch_continued(again, continuation_request(run.session_id))
        return again

    async def continue_unfinished(self) -> None:
        """Continue the persistent runs that the last process left unfinished."""
        assert self._store is not None
        for run_id, request in await self._store.unfinished_runs():
            if run_id not in self._runs:
                run = Run(run_id, request.session_id, self._app.context.world.clock.now())
                run.is_persistent = True
                self._launch_continued(run, request)

    async def stop(self, run: Run) -> None:
        """Interrupt the turn of a run; a run that waits is cancelled and never starts one."""
        await self._interrupt(run)
        if run.is_waiting:
            self._tasks[run.id].cancel()

    async def _interrupt(self, run: Run) -> None:
        run.is_stopping = True
        if run.turn_id:
            await self.send(run, Interrupt())

    async def send(self, run: Run, command: Command) -> None:
        """Send a command to the session of a run, also if another process has it open."""
        if run.session is not None:
            await run.session.send(command)
        else:
            await self._app.journal.post(run.session_id, command)

    @asynccontextmanager
    async def session(self, request: TurnRequest) -> AsyncIterator[Session]:
        """The session of a request, open while the block runs, for commands of its user. Raises
        SessionBusy when another process has it."""
        slot = self._pool.acquire(request.session_id)
        try:
            yield await self._open(slot, request)
        finally:
            await self._pool.release(slot)

    async def follow_processes(self, request: TurnRequest) -> None:
        """Report the background work of the session of a request, and keep it open meanwhile."""
        async with self.session(request) as session:
            if self._notices is not None:
                await self._notices.follow(session, request)

    async def drain(self, seconds: float) -> None:
        """Refuse new and queued runs, wait for active ones, then interrupt the rest."""
        self._admission.drain()
        if self._notices is not None:
            await self._notices.close()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks.values()), timeout=seconds)
        for run in tuple(self._runs.values()):
            if not run.is_over:
                await self._interrupt(run)
        if self._tasks:
            await asyncio.wait(tuple(self._tasks.values()), timeout=INTERRUPT_SECONDS)
        await self.close()

    async def close(self) -> None:
        """Cancel all runs and close their sessions, which interrupts their turns."""
        self._admission.drain()
        if self._notices is not None:
            await self._notices.close()
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run_internally(self, run_id: str, request: TurnRequest) -> None:
        """Run a turn that no client asked for; it is never refused."""
        run = Run(run_id, request.session_id, self._app.context.world.clock.now())
        self._launch_continued(run, request)
        await run.settled.wait()

    def _launch_continued(self, run: Run, request: TurnRequest) -> None:
        ticket = self._admission.enter(request.client, is_continued=True)
        self._launch(run, request, ticket, None)

    def _launch(
        self, run: Run, request: TurnRequest, ticket: AdmissionTicket, on_end: OnEnd | None
    ) -> None:
        self._runs[run.id] = run
        self._busy[run.session_id] += 1
        self.started += 1
        task = asyncio.ensure_future(self._execute(run, request, ticket, on_end))
        self._tasks[run.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(run.id, None))

    async def _execute(
        self, run: Run, request: TurnRequest, ticket: AdmissionTicket, on_end: OnEnd | None
    ) -> None:
        """Execute a run; its readers always get an end or an error."""
        try:
            await self._run_turn(run, request, ticket, on_end)
        except asyncio.CancelledError:
            if not (run.is_waiting and run.is_stopping) or self._admission.is_draining:
                run.fail(draining_error())
                raise
            run.cancel()
            self._cancelled.append(run)
        except Exception as error:
            if not isinstance(error, HermesError):
                log.exception("a run crashed")
            run.fail(error)
        finally:
            self._settle(run, ticket)
            self.endings[run.status] += 1
            self._runs.pop(run.id, None)
            # A run without a TurnEnded continues after a restart, unless that would fail again.
            is_final = run.ended is not None or isinstance(run.failure, NotFound | UsageError)
            if run.is_persistent and is_final:
                assert self._store is not None
                try:
                    await self._store.remove_run(run)
                except HermesError as error:
                    log.error("a finished run is still stored", extra={"error": str(error)})

    async def _run_turn(
        self, run: Run, request: TurnRequest, ticket: AdmissionTicket, on_end: OnEnd | None
    ) -> None:
        slot = self._pool.acquire(request.session_id)
        has_turn = False
        try:
            if run.is_persistent and (ticket.must_wait or slot.turn_lock.locked()):
                run.mark_accepted()
            run.is_waiting = True
            if request.exclusive:
                await slot.acquire_turn()
                has_turn = True
            await ticket.wait(None if run.is_persistent else self._admission.wait_seconds)
            run.is_waiting = False
            while not run.is_over:
                try:
                    session = await self._open(slot, request)
                except SessionBusy:
                    await self._follow_remote(run, request)
                else:
                    await self._follow(run, session, request)
            if on_end is not None and run.ended is not None:
                try:
                    await on_end(run)
                except HermesError as error:
                    # A store that fails does not lose the answer of a turn that has ended.
                    log.error("the end of a run was not stored", extra={"error": str(error)})
            self._settle(run, ticket)
            if slot.session is not None and self._notices is not None:
                await self._notices.follow(slot.session, request)
            if slot.session is not None and slot.session.busy:
                # Closing the session would interrupt a turn that came from its inbox.
                await asyncio.gather(slot.session.wait_until_idle(), return_exceptions=True)
        finally:
            if has_turn:
                slot.turn_lock.release()
            await self._pool.release(slot)

    def _settle(self, run: Run, ticket: AdmissionTicket) -> None:
        """Free the capacity and the session, and wake everyone who waits for the run to end."""
        if run.settled.is_set():
            return
        ticket.release()
        self.release_claim(run.session_id)
        self._busy[run.session_id] -= 1
        if not self._busy[run.session_id]:
            del self._busy[run.session_id]
        run.settled.set()

    async def _open(self, slot: SessionSlot, request: TurnRequest) -> Session:
        async with slot.open_lock:
            session = slot.session
            if session is None:
                opening = await self._session_request(request)
                session = await self._pool.open(slot, opening, adapt=self._adapt)
                if request.history and not session.transcript.messages:
                    await session.import_messages(request.history)
            opened = session.transcript.opened
            if opened is not None and not may_use(request, opened):
                raise NotFound(f"There is no session {request.session_id}.")
            return session

    async def _session_request(self, request: TurnRequest) -> SessionRequest:
        is_new = request.create == "always"
        if request.create == "if_missing":
            try:
                await self._app.archive.info(request.session_id)
            except NotFound:
                is_new = True
        if request.opening is not None:
            id = request.session_id
            return replace(
                request.opening, session_id=id if is_new else "", resume="" if is_new else id
            )
        return SessionRequest(
            source=request.source,
            platform=request.platform or self._platform,
            attended=request.attended,
            principal=request.acts_for or ("member" if request.confined else "owner"),
            resume="" if is_new else request.session_id,
            session_id=request.session_id if is_new else "",
            extra=request.instructions if is_new else "",
            person=request.person,
            toolsets=request.toolsets if is_new else (),
            cwd=request.folder,
            stay=bool(request.folder),
        )

    async def _follow(self, run: Run, session: Session, request: TurnRequest) -> None:
        listener = RunListener(run, holds=request.is_retry)
        session.attach(listener)
        run.session = session
        settled: asyncio.Future[None] | None = None
        try:
            has_turn = await self._send_message(run, session, request)
            listener.release()
            run.mark_accepted()
            if not has_turn:
                return
            settled = asyncio.ensure_future(session.wait_until_idle())
            settled.add_done_callback(listener.settle)
            while not run.is_over:
                await listener.wakeup.wait()
                if listener.is_closed and not run.is_over:
                    run.fail(HermesError("The session was closed before the turn ended."))
                elif run.is_stopping and run.turn_id and not run.is_over:
                    await session.send(Interrupt())
            run.message_count = len(session.transcript.messages)
        finally:
            run.session = None
            session.detach(listener)
            if settled is not None:
                settled.cancel()

    async def _send_message(self, run: Run, session: Session, request: TurnRequest) -> bool:
        """Whether there is a turn to follow."""
        if request.is_retry:
            # A new session is stored with its first message.
            with suppress(NotFound):
                run.apply_all(await self._app.archive.records(run.session_id))
        if run.is_over:
            # An earlier process has ended it; whoever started it again must not wait.
            run.mark_accepted()
            return False
        if run.records:
            session.continue_unfinished()
            return True
        if not request.text and not request.images:
            raise NotFound("This run has no message.")
        transcript = session.transcript
        current = (transcript.model, transcript.provider)
        if request.model and (request.model, request.provider) != current:
            await session.send(SwitchModel(model=request.model, provider=request.provider))
        effort, tier, now = request.effort or None, request.tier or None, session.transcript.tuned
        if (effort, tier) != (now.effort, now.tier):
            await session.send(self._app.controls[session.id].change(effort=effort, tier=tier))
        opened = transcript.opened
        text = message_text(request, opened.system if opened else "")
        say = Say(text=text, images=request.images, key=run.id, origin=request.origin)
        await send_message(session, say, request.busy_mode)
        return True

    async def _follow_remote(self, run: Run, request: TurnRequest) -> None:
        """Another process owns the session: post the message to its inbox and follow the turn in
        the journal. Returns without an end when that process exits."""
        records = await self._app.archive.records(request.session_id)
        opened = records[0].event if records else None
        if isinstance(opened, SessionOpened) and not may_use(request, opened):
            raise NotFound(f"There is no session {request.session_id}.")
        opening = SessionRequest(source=request.source, attended=False, resume=request.session_id)
        text = message_text(request, "")
        say = Say(text=text, images=request.images, key=run.id, origin=request.origin)
        followed = await self._app.post_message(opening, say)
        run.is_remote = True
        run.mark_accepted()
        async with aclosing(followed):
            async for record in followed:
                run.apply(record)
