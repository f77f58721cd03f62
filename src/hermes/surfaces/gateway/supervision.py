"""Background work that survives its failures: tasks that are restarted with growing pauses, and
one timer for everything that happens regularly."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from hermes.core.concurrency import Wakeup
from hermes.core.world import Clock
from hermes.surfaces.gateway.state_file import TaskState

log = logging.getLogger(__name__)

LONGEST_PAUSE_SECONDS = 60.0
# A failure after a longer run than this starts a new count.
RAPID_SECONDS = 60.0
MAX_RAPID_FAILURES = 10
# Jobs that are due within this time run together, so that the process wakes up less often.
SLACK_SECONDS = 1.0

Report = Callable[[str, TaskState | None], None]


class FailureCount:
    """Counts the rapid failures of one task and reports them."""

    def __init__(self, name: str, clock: Clock, report: Report) -> None:
        self._name = name
        self._clock = clock
        self._report = report
        self._failures = 0
        self._is_reported = False

    def record(self, error: Exception, ran_seconds: float) -> float | None:
        """The pause until the next attempt; None when the task is given up."""
        self._failures = 1 if ran_seconds > RAPID_SECONDS else self._failures + 1
        log.error("background task failed", extra={"task": self._name}, exc_info=error)
        is_dead = self._failures >= MAX_RAPID_FAILURES
        self._is_reported = True
        self._report(
            self._name,
            TaskState(
                state="dead" if is_dead else "restarting",
                since=self._clock.now(),
                failures=self._failures,
                error=f"{type(error).__name__}: {error}",
            ),
        )
        return None if is_dead else min(LONGEST_PAUSE_SECONDS, 2.0**self._failures)

    def succeed(self) -> None:
        self._failures = 0
        if self._is_reported:
            self._is_reported = False
            self._report(self._name, None)


class Supervisor:
    """Runs tasks until they end by themselves or the supervisor closes. One that fails is started
    again after a pause, and given up after ten rapid failures."""

    def __init__(self, clock: Clock, report: Report) -> None:
        self._clock = clock
        self._report = report
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._tasks[name] = asyncio.create_task(self._supervise(name, work), name=name)

    async def close(self) -> None:
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _supervise(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        count = FailureCount(name, self._clock, self._report)
        while True:
            began = self._clock.monotonic()
            try:
                await work()
            except Exception as error:
                pause = count.record(error, self._clock.monotonic() - began)
            else:
                count.succeed()
                return
            if pause is None:
                return
            await self._clock.sleep(pause)


class TimedJob:
    """Work that is due at regular times."""

    def __init__(
        self, seconds: float, work: Callable[[], Awaitable[None]], due: float, count: FailureCount
    ) -> None:
        self.seconds = seconds
        self.work = work
        self.due = due
        self.count = count
        self.task: asyncio.Task[None] | None = None
        self.is_dead = False


class Timers:
    """Runs jobs at regular times with one sleeping task. A job that still runs is not started
    again."""

    def __init__(self, clock: Clock, report: Report) -> None:
        self._clock = clock
        self._report = report
        self._jobs: dict[str, TimedJob] = {}
        self._changed = Wakeup()

    def every(self, name: str, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        """Run the work in `seconds` for the first time."""
        count = FailureCount(name, self._clock, self._report)
        due = self._clock.monotonic() + seconds
        self._jobs[name] = TimedJob(seconds, work, due, count)
        self._changed.set()

    async def run(self) -> None:
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            while True:
                alive = [job for job in self._jobs.values() if not job.is_dead]
                now = self._clock.monotonic()
                for job in alive:
                    if job.due <= now + SLACK_SECONDS:
                        self._fire(job, now)
                pause = min((job.due for job in alive), default=now + 3_600.0) - now
                sleep = asyncio.ensure_future(self._clock.sleep(max(pause, 0.0)))
                await asyncio.wait((sleep, changed), return_when=asyncio.FIRST_COMPLETED)
                sleep.cancel()
                if changed.done():
                    changed = asyncio.ensure_future(self._changed.wait())
        finally:
            changed.cancel()
            tasks = [job.task for job in self._jobs.values() if job.task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _fire(self, job: TimedJob, now: float) -> None:
        # Not `due + seconds`: after a suspended machine wakes up, missed times are not made up.
        job.due = now + job.seconds
        if job.task is None or job.task.done():
            job.task = asyncio.create_task(self._execute(job))

    async def _execute(self, job: TimedJob) -> None:
        began = self._clock.monotonic()
        try:
            await job.work()
        except Exception as error:
            # Its interval is the pause, unless the growing pause is longer.
            pause = job.count.record(error, self._clock.monotonic() - began)
            job.is_dead = pause is None
            job.due = max(job.due, self._clock.monotonic() + (pause or 0.0))
        else:
            job.count.succeed()
