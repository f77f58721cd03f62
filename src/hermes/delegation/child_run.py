"""Runs one child session to its end: opens or resumes it, waits, corrects and closes it."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hermes.codec.json_schema import schema_errors
from hermes.codec.values import JsonObject, Value
from hermes.core.commands import Answer, End, Interrupt, Say
from hermes.core.errors import HermesError, NotFound
from hermes.core.events import ApprovalAsked, QuestionAsked
from hermes.core.messages import Image
from hermes.core.session import Session
from hermes.core.session_request import ChildOptions
from hermes.delegation.host import ChildHost, ChildOpening
from hermes.delegation.identity import CORRECTION_KEY, FROM_PARENT, SUBAGENT, TASK_KEY
from hermes.delegation.monitor import ChildMonitor, OnLine, shorten
from hermes.delegation.outcome import ChildOutcome, read_outcome
from hermes.delegation.prompt import CORRECTION

log = logging.getLogger(__name__)

LEAST_TIMEOUT = 30
# How long a stopped child session may take to end its turn.
STOP_SECONDS = 1.5
_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n```", re.DOTALL)


class ChildTask(Value):
    """A child session and its task."""

    id: str
    text: str
    options: ChildOptions
    source: str = SUBAGENT
    origin: str = FROM_PARENT
    images: tuple[Image, ...] = ()
    schema: JsonObject | None = None
    attended: bool = False
    # The call of the owner that waits for it; "" if none does.
    call_id: str = ""
    # How questions name it.
    name: str = ""
    # The levels above it.
    depth: int = 1


# Waits until a child session may run.
Admission = Callable[[], Awaitable[None]]


async def _no_wait() -> None:
    """Every child session that a call waits for may run at once."""


class ChildRun:
    """One child session while it runs in this process. `stop` ends it early."""

    def __init__(
        self,
        host: ChildHost,
        owner: Session,
        task: ChildTask,
        *,
        question_lock: asyncio.Lock,
        on_line: OnLine = lambda _line: None,
        log_file: Path | None = None,
        admission: Admission = _no_wait,
    ) -> None:
        self.task = task
        self.owner = owner
        self.stop = asyncio.Event()
        self.started_at = host.context.world.clock.now()
        self.line = "waiting"
        # Set once the task is durable.
        self.received = asyncio.Event()
        self.session: Session | None = None
        self._host = host
        self._world = host.context.world
        self._settings = host.context.settings.delegation
        self._question_lock = question_lock
        self._on_line = on_line
        self._log_file = log_file
        self._admission = admission
        self._answering: set[asyncio.Task[None]] = set()
        self._timed_out = False

    async def run(self) -> ChildOutcome:
        """Run the child session to its end, or return the outcome of one that has ended. After
        `stop`, return within a moment; the session then ends its turn on its own."""
        outcome = await self.stored_outcome()
        if outcome.is_finished and not self._needs_correction(outcome):
            return outcome
        session = self.session = await self._open(outcome)
        try:
            await self._work(session, outcome)
            outcome = await self.stored_outcome()
            if self._needs_correction(outcome) and not self.stop.is_set():
                await self._correct(session, outcome)
            await self._finish(session)
        except asyncio.CancelledError:
            await self._close(session, suspend=not self.stop.is_set())
            raise
        except BaseException:
            await self._close(session)
            raise
        await self._close(session)
        return await self.stored_outcome()

    async def stored_outcome(self) -> ChildOutcome:
        try:
            return read_outcome(await self._host.journal.read(self.task.id))
        except NotFound:
            return read_outcome(())

    def final_errors(self, outcome: ChildOutcome) -> tuple[str, ...] | None:
        """Return why the answer does not fit the schema of the task; None without a schema."""
        if self.task.schema is None or outcome.status != "completed":
            return None
        return answer_errors(outcome.summary, self.task.schema)

    async def _open(self, outcome: ChildOutcome) -> Session:
        task = self.task
        opening = ChildOpening(
            id=task.id,
            source=task.source,
            attended=task.attended,
            options=task.options,
            is_new=not outcome.records,
        )
        session = await self._host.open_child(self.owner, opening)
        self._world.kill_point("child.opened")
        return session

    async def _work(self, session: Session, outcome: ChildOutcome) -> None:
        monitor = ChildMonitor(self._world.clock, self._log_file, self._show, self._ask)
        session.attach(monitor)
        try:
            if outcome.task is None:
                task = self.task
                # The task is durable before it waits for its start.
                session.hold()
                say = Say(text=task.text, images=task.images, key=TASK_KEY, origin=task.origin)
                await session.send(say)
            self.received.set()
            self._world.kill_point("child.received")
            await self._admission()
            monitor.active_at = self._world.clock.monotonic()
            session.continue_unfinished()
            await self._wait(session, monitor)
        finally:
            session.detach(monitor)

    async def _correct(self, session: Session, outcome: ChildOutcome) -> None:
        assert self.task.schema is not None
        errors = answer_errors(outcome.summary, self.task.schema)
        text = CORRECTION.format(" ".join(errors))
        monitor = ChildMonitor(self._world.clock, self._log_file, self._show, self._ask)
        session.attach(monitor)
        try:
            await session.send(Say(text=text, key=CORRECTION_KEY, origin=FROM_PARENT))
            await self._wait(session, monitor)
        finally:
            session.detach(monitor)

    async def _wait(self, session: Session, monitor: ChildMonitor) -> None:
        """Wait until the child session is idle. Interrupt it if it is stopped or takes too long."""
        settings, clock = self._settings, self._world.clock
        idle = asyncio.ensure_future(session.wait_until_idle())
        waits: list[asyncio.Future[Any]] = [
            idle,
            asyncio.ensure_future(self.stop.wait()),
            asyncio.ensure_future(
                monitor.wait_until_idle_for(settings.idle_seconds, settings.idle_tool_seconds)
            ),
        ]
        if settings.child_timeout_seconds:
            seconds = max(LEAST_TIMEOUT, settings.child_timeout_seconds)
            waits.append(asyncio.ensure_future(clock.sleep(seconds)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if not idle.done():
                self._timed_out = not self.stop.is_set()
                await session.send(Interrupt())
                await asyncio.wait((idle,), timeout=STOP_SECONDS)
            if idle.done() and not idle.cancelled() and (error := idle.exception()):
                raise error
        finally:
            for each in waits:
                each.cancel()

    def _needs_correction(self, outcome: ChildOutcome) -> bool:
        errors = None if outcome.is_corrected else self.final_errors(outcome)
        return bool(errors)

    async def _finish(self, session: Session) -> None:
        """End what the child session started, and note why it was closed."""
        self._world.kill_point("child.finished")
        for process in await session.workspace.processes.list():
            if process.status == "running":
                await session.workspace.processes.kill(process.id)
        if session.busy:
            # Interrupted, but its tools take longer to end: closing waits for them.
            return
        if self.task.source == SUBAGENT:
            outcome = read_outcome(await self._host.journal.read(self.task.id))
            reason = "timeout" if self._timed_out else outcome.status
            await session.send(End(reason=reason))
        elif self._timed_out:
            await session.send(End(reason="timeout"))

    async def _close(self, session: Session, *, suspend: bool = False) -> None:
        self.session = None
        for each in tuple(self._answering):
            each.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)
        with suppress(HermesError):
            await self._host.close_child(session, suspend=suspend)

    def _show(self, line: str) -> None:
        self.line = line
        self._on_line(line)

    def _ask(self, asked: ApprovalAsked | QuestionAsked) -> None:
        answering = asyncio.ensure_future(self._relay(asked))
        self._answering.add(answering)
        answering.add_done_callback(self._answering.discard)

    async def _relay(self, asked: ApprovalAsked | QuestionAsked) -> None:
        """Ask the person in the session of the owner, and forward the answer."""
        is_approval = isinstance(asked, ApprovalAsked)
        reason = asked.reason if isinstance(asked, ApprovalAsked) else asked.question
        why = f"Sub-agent {self.task.name}: {reason}"
        answer = Answer(id=asked.id, text="deny" if is_approval else "", by="system")
        try:
            async with self._question_lock:
                answer = await self.owner.ask_for_child(self.task.call_id, asked, why, self.stop)
        except HermesError as error:
            log.warning("a question was not asked", extra={"error": str(error)})
        if self.session is not None:
            await self.session.send(answer)


def answer_errors(text: str, schema: JsonObject) -> tuple[str, ...]:
    """Return why the text is not JSON that fits the schema."""
    found = _FENCED.search(text)
    try:
        value = json.loads(found[1] if found else text)
    except ValueError as error:
        return (f"It is not JSON ({error}).",)
    return schema_errors(value, schema)


def task_name(index: int, goal: str) -> str:
    return f"[{index + 1}] ({shorten(goal, 60)})"
