"""Background child sessions: they run while their owner goes on, and report exactly once."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import NamedTuple

from hermes.config.delegation_settings import BackgroundSettings
from hermes.core.errors import NotFound, SessionBusy, ToolError
from hermes.core.events import SessionEnded
from hermes.core.ports import ProcessNotice
from hermes.core.session import Session
from hermes.delegation.child_run import ChildTask
from hermes.delegation.delegations import Delegations
from hermes.delegation.identity import BACKGROUND, REPORTED, STOPPED, notice_key
from hermes.delegation.monitor import shorten
from hermes.delegation.outcome import ChildOutcome, read_outcome
from hermes.delegation.prompt import schema_in
from hermes.delegation.summaries import fit_summary, summary_limit
from hermes.journal.journal import SqliteJournal
from hermes.policy.sources import foreign_origins

KILL_SECONDS = 2.0
GOAL_CHARS = 80
NOTICE = "[Background task {id} {status}: {goal}]\n{summary}"


class BackgroundChild:
    """A background child session that its owner has not been told about."""

    def __init__(self, child_id: str, goal: str, started_at: float) -> None:
        self.id = child_id
        self.goal = goal
        self.started_at = started_at
        self.work: asyncio.Task[ChildOutcome] | None = None
        self.outcome: ChildOutcome | None = None
        self.error = ""
        self.ended = asyncio.Event()


class OwedChild(NamedTuple):
    """A background child session in the journal that has not reported."""

    id: str
    owner: str
    started_at: float


async def owed_children(journal: SqliteJournal, owner: str = "") -> tuple[OwedChild, ...]:
    """Return the background child sessions that have not reported, of one owner or of all."""
    query = (
        "SELECT s.id, p.id, m.started_at FROM sessions AS s JOIN summaries AS m USING (session)"
        " JOIN sessions AS p ON p.session = s.parent"
        " WHERE m.source = ?1 AND m.ended_at IS NULL AND (?2 = '' OR p.id = ?2)"
        " ORDER BY s.session"
    )
    if not journal.path.exists():
        return ()
    rows = await journal.reading(lambda db: db.execute(query, (BACKGROUND, owner)).fetchall())
    return tuple(OwedChild(*row) for row in rows)


class Places:
    """The places of running background child sessions; those without one wait in order."""

    def __init__(self, limits: BackgroundSettings) -> None:
        self._limits = limits
        # The owner of each running child session.
        self._taken: dict[str, str] = {}
        self._waiting: list[tuple[str, str, asyncio.Future[None]]] = []

    async def take(self, child_id: str, owner_id: str) -> None:
        """Wait for a place."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((child_id, owner_id, place))
        self._assign()
        await place

    def free(self, child_id: str) -> None:
        self._taken.pop(child_id, None)
        self._assign()

    def _assign(self) -> None:
        for entry in tuple(self._waiting):
            child_id, owner_id, place = entry
            of_owner = sum(each == owner_id for each in self._taken.values())
            if place.cancelled():
                self._waiting.remove(entry)
            elif (
                len(self._taken) < self._limits.max_per_process
                and of_owner < self._limits.max_per_session
            ):
                self._waiting.remove(entry)
                self._taken[child_id] = owner_id
                place.set_result(None)


class BackgroundChildren:
    """The background child sessions of one process. Those beyond the limits wait."""

    def __init__(self, delegations: Delegations) -> None:
        self.delegations = delegations
        self._host = delegations.host
        self._children: dict[str, dict[str, BackgroundChild]] = {}
        self._adopted: set[str] = set()
        self._places = Places(delegations.host.context.settings.background)
        self._news: dict[str, asyncio.Event] = {}

    async def start(self, owner: Session, task: ChildTask, log_file: Path | None) -> None:
        """Start a child session; returns when its task is durable."""
        if task.id in self._of(owner.id):
            return
        goal, now = shorten(task.text, GOAL_CHARS), self._host.context.world.clock.now()
        child = BackgroundChild(task.id, goal, now)
        run, work = self.delegations.start(
            owner, task, log_file=log_file, admission=lambda: self._places.take(task.id, owner.id)
        )
        self._follow(owner.id, child, work)
        received = asyncio.ensure_future(run.received.wait())
        try:
            await asyncio.wait((received, work), return_when=asyncio.FIRST_COMPLETED)
            if work.done() and not work.cancelled() and work.exception():
                self._of(owner.id).pop(task.id, None)
                raise ToolError(f"The task was not started: {work.exception()}")
        finally:
            received.cancel()

    async def adopt(self, owner: Session) -> None:
        """Continue the child sessions that an earlier process left, once per open owner."""
        if owner.id in self._adopted:
            return
        self._adopted.add(owner.id)
        for owed in await owed_children(self._host.journal, owner.id):
            if owed.id in self._of(owner.id):
                continue
            outcome = read_outcome(await self._host.journal.read(owed.id))
            task = await self._stored_task(owner, owed.id, outcome)
            if task is None:
                continue
            child = BackgroundChild(owed.id, shorten(task.text, GOAL_CHARS), owed.started_at)
            wait = partial(self._places.take, owed.id, owner.id)
            _, work = self.delegations.start(owner, task, admission=wait)
            self._follow(owner.id, child, work)

    def forget_owner(self, owner_id: str) -> None:
        """The owner is closed. Its child sessions run on; a later owner adopts them again."""
        self._adopted.discard(owner_id)

    def list(self, owner_id: str) -> tuple[BackgroundChild, ...]:
        return tuple(self._of(owner_id).values())

    async def stop(self, owner_id: str, child_id: str) -> BackgroundChild:
        """Stop a child session. It does not report."""
        child = self._of(owner_id).pop(child_id)
        run = self.delegations.find(child_id)
        if run is not None and child.work is not None:
            run.stop.set()
            await asyncio.wait((child.work,), timeout=KILL_SECONDS)
        await self.close_record(child_id, STOPPED)
        return child

    async def mark_reported(self, owner_id: str, child_id: str) -> None:
        await self.close_record(child_id, REPORTED)
        self._of(owner_id).pop(child_id, None)

    async def close_record(self, child_id: str, reason: str) -> None:
        """Note in the journal that nobody waits for this child session any more."""
        journal = self._host.journal
        try:
            lease = await journal.acquire(child_id)
        except (SessionBusy, NotFound):
            # Somebody has opened it; at worst it is announced again, under the same key.
            return
        try:
            await journal.append(lease, (SessionEnded(reason=reason),))
        finally:
            await journal.release(lease)

    async def next_finished(self, owner_id: str, seen: set[str]) -> BackgroundChild:
        """Wait for a child session that has ended and is not in `seen`."""
        while True:
            for child in self.list(owner_id):
                if child.ended.is_set() and child.id not in seen:
                    return child
            news = self._news.setdefault(owner_id, asyncio.Event())
            news.clear()
            await news.wait()

    async def notice(self, owner: Session, child: BackgroundChild) -> ProcessNotice:
        outcome = child.outcome
        status = "failed" if outcome is None else outcome.status
        text = child.error if outcome is None else outcome.summary or outcome_error(outcome)
        limit = self._limit(owner)
        summary = await fit_summary(text, limit, owner.workspace, child.id)
        sources = foreign_origins(outcome.origins) if outcome else ()
        return ProcessNotice(
            key=notice_key(child.id),
            process_id=child.id,
            text=NOTICE.format(id=child.id, status=status, goal=child.goal, summary=summary),
            sources=sources,
        )

    def _limit(self, owner: Session) -> int:
        most = self._host.context.settings.delegation.max_summary_chars
        window = self._host.parent_facts(owner).window
        return summary_limit(most, window, owner.transcript.last_prompt, 1)

    def _of(self, owner_id: str) -> dict[str, BackgroundChild]:
        return self._children.setdefault(owner_id, {})

    def _follow(
        self, owner_id: str, child: BackgroundChild, work: asyncio.Task[ChildOutcome]
    ) -> None:
        self._of(owner_id)[child.id] = child
        child.work = work
        work.add_done_callback(lambda done: self._end(owner_id, child, done))

    def _end(self, owner_id: str, child: BackgroundChild, work: asyncio.Task[ChildOutcome]) -> None:
        self._places.free(child.id)
        if work.cancelled():
            # Suspended; it continues when its owner is opened again.
            self._of(owner_id).pop(child.id, None)
            return
        error = work.exception()
        child.outcome, child.error = (None, str(error)) if error else (work.result(), "")
        child.ended.set()
        if news := self._news.get(owner_id):
            news.set()

    async def _stored_task(
        self, owner: Session, child_id: str, outcome: ChildOutcome
    ) -> ChildTask | None:
        """Return the task of a stored child session; None if it never received one that a model
        gave."""
        first = outcome.task
        if first is None or first.message.origin == "user":
            return None
        return ChildTask(
            id=child_id,
            text=first.message.text,
            options=await self.delegations.options_of_stored(owner, outcome),
            source=BACKGROUND,
            schema=schema_in(first.message.text),
            name=shorten(first.message.text, GOAL_CHARS),
        )


def outcome_error(outcome: ChildOutcome) -> str:
    return (outcome.ended.error if outcome.ended else "") or "There is no answer."
