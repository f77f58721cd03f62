"""The child sessions that run in this process: started, followed, stopped and suspended."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from hermes.core.errors import ToolError
from hermes.core.session import Session
from hermes.core.session_request import ChildOptions
from hermes.delegation.child_run import Admission, ChildRun, ChildTask
from hermes.delegation.host import ChildHost
from hermes.delegation.identity import SUBAGENT
from hermes.delegation.monitor import OnLine
from hermes.delegation.outcome import ChildOutcome
from hermes.delegation.tasks import Task, blocked_tools, child_tools

log = logging.getLogger(__name__)

# Child sessions that calls of one process wait for at the same time.
MAX_LIVE = 12
CLOSE_SECONDS = 5.0
LOGS = "delegation/live"


class Delegations:
    """The child sessions of one process, by session id."""

    def __init__(self, host: ChildHost) -> None:
        self.host = host
        self._runs: dict[str, ChildRun] = {}
        self._tasks: dict[str, asyncio.Task[ChildOutcome]] = {}
        # Siblings ask their owner one question at a time.
        self._question_locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def runs(self) -> tuple[ChildRun, ...]:
        return tuple(self._runs.values())

    def find(self, child_id: str) -> ChildRun | None:
        return self._runs.get(child_id)

    def depth_of(self, session_id: str) -> int:
        """Return the levels above a session; 0 for a root."""
        run = self._runs.get(session_id)
        return run.task.depth if run else 0

    def tree_of(self, session_id: str) -> tuple[ChildRun, ...]:
        """Return the running child sessions of a session and theirs, parents first."""
        found: list[ChildRun] = []
        for run in self._runs.values():
            if run.owner.id == session_id:
                found += [run, *self.tree_of(run.task.id)]
        return tuple(found)

    def check_capacity(self, count: int) -> None:
        """Raise ToolError when this process may not run so many more child sessions."""
        live = sum(run.task.source == SUBAGENT for run in self._runs.values())
        if live + count > MAX_LIVE:
            raise ToolError(
                f"{live} sub-agents already run in this process, of at most {MAX_LIVE}; do the "
                "work yourself or try again later. Nothing was started."
            )

    async def options(self, owner: Session, task: Task, max_steps: int) -> ChildOptions:
        """Return what a child session gets from its owner; raise ToolError for unknown toolsets."""
        settings = self.host.context.settings.delegation
        facts = self.host.parent_facts(owner)
        model, provider = await self.host.child_model(owner)
        tools = child_tools(
            task,
            facts.tools,
            searches=facts.finds_added and settings.inherit_mcp_toolsets,
            size=self.host.tool_tokens,
        )
        return ChildOptions(
            tools=tools,
            model=model,
            provider=provider,
            surface=facts.surface,
            findable=_findable(facts.findable),
            origins=tuple(sorted(owner.transcript.origins() - {"user"})),
            max_steps=max_steps,
            approved=facts.approved or settings.subagent_auto_approve,
            effort=settings.reasoning_effort,
        )

    async def options_of_stored(self, owner: Session, outcome: ChildOutcome) -> ChildOptions:
        """Return the options of a child session that exists: its own, as far as it stores them."""
        opened = outcome.transcript.opened
        assert opened is not None
        settings, facts = self.host.context.settings.delegation, self.host.parent_facts(owner)
        return ChildOptions(
            tools=opened.tools,
            model=outcome.transcript.model,
            provider=outcome.transcript.provider,
            surface=facts.surface,
            findable=_findable(facts.findable),
            max_steps=settings.max_iterations,
            approved=facts.approved or settings.subagent_auto_approve,
            effort=settings.reasoning_effort,
        )

    def start(
        self,
        owner: Session,
        task: ChildTask,
        *,
        on_line: OnLine = lambda _line: None,
        log_file: Path | None = None,
        admission: Admission | None = None,
    ) -> tuple[ChildRun, asyncio.Task[ChildOutcome]]:
        """Start or continue a child session, unless it runs already."""
        if task.id in self._runs:
            return self._runs[task.id], self._tasks[task.id]
        more = {} if admission is None else {"admission": admission}
        run = ChildRun(
            self.host,
            owner,
            task,
            question_lock=self._question_locks[owner.id],
            on_line=on_line,
            log_file=log_file,
            **more,
        )
        work = asyncio.ensure_future(run.run())
        self._runs[task.id], self._tasks[task.id] = run, work
        work.add_done_callback(lambda _: self._forget(task.id))
        return run, work

    def log_file(self, delegation_id: str, index: int) -> Path | None:
        """Return the live log of a task, or None when it cannot be written."""
        folder = self.host.context.home.cache / LOGS / delegation_id
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            log.warning("no live log of a child session", extra={"error": str(error)})
            return None
        return folder / f"{index}.log"

    async def close(self) -> None:
        """Suspend the child sessions that still run; they continue when their owner is opened
        again. Those that were stopped end first."""
        stopping = [self._tasks[run.task.id] for run in self.runs if run.stop.is_set()]
        if stopping:
            await asyncio.wait(stopping, timeout=CLOSE_SECONDS)
        await self.suspend(run.task.id for run in self.runs)

    async def suspend(self, child_ids: Iterable[str]) -> None:
        works = [self._tasks[each] for each in child_ids if each in self._tasks]
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)

    def _forget(self, child_id: str) -> None:
        run, work = self._runs.pop(child_id), self._tasks.pop(child_id)
        if not any(other.owner is run.owner for other in self._runs.values()):
            self._question_locks.pop(run.owner.id, None)
        if not work.cancelled() and (error := work.exception()):
            log.warning("a child session failed", extra={"error": str(error)})


def _findable(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in blocked_tools())
