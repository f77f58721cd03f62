"""Runs scheduled jobs as sessions, and builds the scheduler of a process."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable

from hermes.app.app import App
from hermes.codec.values import JsonObject
from hermes.core.errors import HermesError, NotFound
from hermes.core.session_request import SessionRequest
from hermes.cron.delivery import OutputDelivery
from hermes.cron.execution import JobAnswer, JobTurn
from hermes.cron.scheduler import Scheduler
from hermes.hosting.admission import Admission
from hermes.hosting.follower import RunFollower, TextPiece
from hermes.hosting.request import TurnRequest
from hermes.hosting.run import Run
from hermes.hosting.run_executor import RunExecutor
from hermes.hosting.session_pool import SessionPool

CRON = "cron"
INTERRUPTED = "The run was interrupted."
# How often within its limit a run is checked for activity.
CHECKS = 4
IDLE_SECONDS = 3_600.0
# Failures that pass with time, if no model has answered yet.
UNREACHABLE = ("timeout", "cut", "overloaded", "server_error", "upstream_rate_limit")


class HostedJobSessions:
    """Runs jobs with a RunExecutor (`cron.execution.JobSessions`)."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._pool = SessionPool(app)
        self._executor = RunExecutor(app, self._pool, Admission(), platform=CRON)
        self._active: set[Run] = set()
        self._quiet: set[Run] = set()
        # Gets the text of answers as it is written.
        self.on_text: Callable[[str], None] | None = None

    async def run(self, turn: JobTurn, *, inactivity_seconds: float) -> JobAnswer:
        run = await self._executor.start(run_id(turn.session_id), _request(turn))
        self._active.add(run)
        try:
            await self._wait(run, inactivity_seconds)
            is_quiet = run in self._quiet
        finally:
            self._active.discard(run)
            self._quiet.discard(run)
        if is_quiet:
            error = f"The run was stopped after {inactivity_seconds:.0f} seconds without activity."
            return JobAnswer(status="failed", text=run.text, error=error, model=run.model)
        return self._answer(run)

    async def interrupt(self) -> None:
        for run in tuple(self._active):
            await self._executor.stop(run)

    async def is_started(self, session_id: str) -> bool:
        try:
            run = await self._executor.find(run_id(session_id))
        except NotFound:
            return False
        return bool(run.records)

    async def load_skill(self, name: str, cwd: str) -> str:
        return await self._app.skills(cwd).preload([name])

    async def before_run(self, facts: JsonObject) -> str:
        if not self._app.hooks.any:
            return ""
        for answer in await self._app.hooks.registry.fire("pre_cron_run", **facts):
            if isinstance(answer, dict) and (answer.get("skip") or answer.get("action") == "skip"):
                return str(answer.get("reason") or "no reason was given")
        return ""

    async def after_run(self, facts: JsonObject) -> None:
        if self._app.hooks.any:
            await self._app.hooks.registry.fire("post_cron_run", **facts)

    async def close(self) -> None:
        await self._executor.close()
        await self._pool.close()

    async def _wait(self, run: Run, inactivity_seconds: float) -> None:
        """Wait until the run has ended."""
        watching = asyncio.ensure_future(self._stop_when_quiet(run, inactivity_seconds))
        try:
            if self.on_text is not None:
                await _follow(run, self.on_text)
            await run.settled.wait()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _stop_when_quiet(self, run: Run, seconds: float) -> None:
        """Stop the run when it has had no event and no word for this long; never with 0."""
        clock, before, quiet_seconds = self._app.context.world.clock, (-1, -1), 0.0
        while not seconds or quiet_seconds < seconds:
            await clock.sleep(seconds / CHECKS if seconds else IDLE_SECONDS)
            now = (run.last_n, len(run.draft.pieces))
            quiet_seconds = quiet_seconds + seconds / CHECKS if now == before else 0.0
            before = now
        self._quiet.add(run)
        await self._executor.stop(run)

    def _answer(self, run: Run) -> JobAnswer:
        if run.failure is not None:
            if not isinstance(run.failure, HermesError):
                raise run.failure
            return JobAnswer(status="failed", error=str(run.failure), model=run.model)
        assert run.ended is not None
        ended = run.ended
        if ended.reason == "interrupted":
            return JobAnswer(
                status="interrupted", text=run.text, error=INTERRUPTED, model=run.model
            )
        if ended.reason in ("failed", "crashed", "paused", "guardrail", "partial"):
            return JobAnswer(
                status="failed",
                text=run.text,
                error=ended.error or f"The turn ended early ({ended.detail}).",
                model=run.model,
                is_unreachable=not run.replies and ended.detail in UNREACHABLE,
            )
        return JobAnswer(status="ok", text=run.text, model=run.model)


def run_id(session_id: str) -> str:
    """The run of a job's session is known to every process."""
    return f"run_{session_id}_{hashlib.sha256(session_id.encode()).hexdigest()[:12]}"


def make_scheduler(
    app: App, delivery: OutputDelivery | None = None
) -> tuple[Scheduler, HostedJobSessions]:
    """The scheduler of a process, and its sessions, which must be closed after it. A gateway passes
    its `delivery`."""
    sessions = HostedJobSessions(app)
    return Scheduler(app.context, app.journal, sessions, delivery), sessions


async def _follow(run: Run, on_text: Callable[[str], None]) -> None:
    follower = RunFollower(run)
    try:
        while not follower.is_done:
            for event in follower.read():
                if isinstance(event, TextPiece) and event.is_text:
                    on_text(event.text)
            await follower.wait()
    finally:
        follower.close()


def _request(turn: JobTurn) -> TurnRequest:
    return TurnRequest(
        session_id=turn.session_id,
        text=turn.text,
        source=CRON,
        origin=turn.origin,
        model=turn.model,
        provider=turn.provider,
        create="if_missing",
        is_retry=True,
        opening=SessionRequest(
            source=CRON,
            attended=False,
            platform=CRON,
            cwd=turn.cwd,
            principal=turn.principal,
            person=turn.person,
            toolsets=turn.toolsets,
            job=turn.job,
        ),
    )
