"""Starts jobs when they are due. Any number of schedulers may share a home: each due time is a row
that one of them claims, and a run whose process dies is continued by another."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from hermes.codec.values import JsonObject
from hermes.config.load import load
from hermes.core.errors import HermesError, UsageError
from hermes.cron.delivery import NoDelivery, OutputDelivery, WaitingOutputs
from hermes.cron.due import Plan, advance, correct, due_time, plan_job
from hermes.cron.execution import JobExecutor, JobSessions, session_id
from hermes.cron.output import RunOutput
from hermes.cron.reporting import RunReporter
from hermes.cron.store import JobStore
from hermes.cron.wakeup import SchedulerSignal
from hermes.journal.due_times import DueTime, DueTimes

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.journal.journal import SqliteJournal

log = logging.getLogger(__name__)

# How long the rows of past runs are kept.
KEEP_SECONDS = 90 * 86_400.0
# How long interrupted runs have to end and to be reported.
INTERRUPT_SECONDS = 10.0
STOPPED = "Hermes was stopped during the run."
SCRIPT_DIED = "The process died while the script ran; its outcome is unknown."


class Scheduler:
    """The scheduler of one process. `run` works until it is cancelled; `tick` starts what is due
    now. Without a `delivery`, output for chats waits for a process that has one."""

    def __init__(
        self,
        run: RunContext,
        journal: SqliteJournal,
        sessions: JobSessions,
        delivery: OutputDelivery | None = None,
    ) -> None:
        self._run = run
        self._store = JobStore(run.home, run.world)
        self._due_times = DueTimes(journal)
        self._sessions = sessions
        self._executor = JobExecutor(run, self._store, sessions)
        outbox = WaitingOutputs(self._store.folder / "outbox")
        self._reporter = RunReporter(self._store, outbox, delivery or NoDelivery())
        self._has_delivery = delivery is not None
        self._signal = SchedulerSignal(self._store.wake_folder)
        self._stamp: tuple[int, int] | None = None
        self._settings, self._zone = run.settings.cron, run.settings.timezone
        self._tasks: dict[tuple[str, float], asyncio.Task[None]] = {}
        # When this process first saw that a job is due.
        self._seen: dict[tuple[str, float], float] = {}

    @property
    def running(self) -> tuple[str, ...]:
        """The ids of the jobs that this process runs now."""
        return tuple(job for job, _ in self._tasks)

    async def run(self) -> None:
        """Start jobs when they are due, until cancelled. Cancelling leaves active runs to `drain`
        or, when the process ends, to another scheduler."""
        self._signal.open()
        try:
            await self._due_times.prune(keep_seconds=KEEP_SECONDS)
            while True:
                await self._pause(await self._check())
        finally:
            self._signal.close()
            wake = self._store.wake_folder
            if not (wake.is_dir() and any(wake.iterdir())):
                self._store.remove_heartbeat()

    async def tick(self) -> int:
        """Start what is due now; returns the number of runs that were started or continued."""
        before = set(self._tasks)
        await self._check()
        return len(set(self._tasks) - before)

    async def run_job(self, job_id: str) -> None:
        """Run a job now in this process, beside its schedule. Raise UsageError while it runs."""
        job = await asyncio.to_thread(self._store.get, job_id)
        if any(row.job == job_id for row in await self._due_times.open_runs()):
            raise UsageError("This job is running; wait for its end.")
        due_at = float(int(self._run.world.clock.now()))
        while not await self._claim(job, due_at):
            due_at += 1.0  # The job has run in this second.
        self._launch(job, due_at, was_running=False)
        await self._tasks[job_id, due_at]

    async def wait(self) -> None:
        """Wait until no run is active and nothing is due."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks.values()), return_when=asyncio.FIRST_COMPLETED)
            await self._check()

    async def drain(self, seconds: float) -> None:
        """Give active runs this time to end, then interrupt them."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks.values()), timeout=seconds)
        if self._tasks:
            await self._sessions.interrupt()
            await asyncio.wait(tuple(self._tasks.values()), timeout=INTERRUPT_SECONDS)
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _check(self) -> float:
        """One pass over the jobs; returns the seconds until the next one. A failure, such as a full
        disk, ends the pass and not the scheduler."""
        try:
            self._reload_settings()
            await self._take_over()
            pause = await self._start_due()
            if self._has_delivery:
                await self._reporter.send_waiting()
        except HermesError as error:
            log.error("the scheduler could not check the jobs", extra={"error": str(error)})
            await asyncio.to_thread(self._beat, False)
            return float(self._settings.tick_seconds)
        await asyncio.to_thread(self._beat, True)
        return pause

    def _beat(self, succeeded: bool) -> None:
        try:
            self._store.beat(succeeded=succeeded)
        except OSError as error:
            log.error("the heartbeat cannot be written", extra={"error": str(error)})

    async def _pause(self, seconds: float) -> None:
        """Sleep until a job is due, the jobs change or a run ends."""
        sleeping = asyncio.ensure_future(self._run.world.clock.sleep(seconds))
        waking = asyncio.ensure_future(self._signal.event.wait())
        try:
            await asyncio.wait((sleeping, waking), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            waking.cancel()
            await asyncio.gather(sleeping, waking, return_exceptions=True)
        self._signal.event.clear()

    def _reload_settings(self) -> None:
        """Use changed settings without a restart."""
        try:
            found = self._run.home.config.stat()
            stamp = (found.st_mtime_ns, found.st_size)
        except OSError:
            stamp = (0, 0)
        if self._stamp is not None and stamp != self._stamp:
            settings = load(self._run.home, env=self._run.env).settings
            self._settings, self._zone = settings.cron, settings.timezone
        self._stamp = stamp

    async def _start_due(self) -> float:
        """Start due jobs as far as there is capacity; returns the seconds until the next check."""
        plans: list[tuple[JsonObject, Plan, bool]] = []
        for job, plan in await self._due_jobs():
            active = len(self._tasks) + sum(is_ours for _, _, is_ours in plans)
            is_full = active >= self._settings.max_parallel_jobs
            if plan.action != "hold" and not (plan.action == "run" and is_full):
                plans.append((job, plan, await self._record(job, plan)))
        if plans:
            moved = [(str(job["id"]), plan) for job, plan, _ in plans]
            current = await asyncio.to_thread(self._advance, moved)
            for job, plan, is_ours in plans:
                if is_ours:
                    self._launch(current.get(job["id"], job), plan.due_at, was_running=False)
        return await self._seconds_until_next()

    async def _due_jobs(self) -> list[tuple[JsonObject, Plan]]:
        """What to do with each job that is due, the longest due first."""
        jobs = await asyncio.to_thread(self._corrected_jobs)
        now = self._run.world.clock.now()
        moments = ((due_time(job), job) for job in jobs)
        due = [(at, job) for at, job in moments if at is not None and at <= now]
        self._seen = {key: self._seen.get(key, now) for key in ((j["id"], at) for at, j in due)}
        opened: dict[str, set[float]] = {}
        for row in await self._due_times.open_runs() if due else ():
            opened.setdefault(row.job, set()).add(row.due_at)
        found: list[tuple[JsonObject, Plan]] = []
        for due_at, job in sorted(due, key=lambda each: each[0]):
            runs = opened.get(job["id"], set())
            try:
                plan = plan_job(
                    job,
                    due_at,
                    seen_at=self._seen[job["id"], due_at],
                    is_running=bool(runs) and due_at not in runs,
                    settings=self._settings,
                    zone=self._zone,
                )
                found.append((job, plan))
            except UsageError as error:
                broken: JsonObject = {"state": "error", "enabled": False, "last_error": str(error)}
                await asyncio.to_thread(self._store.update, job["id"], broken)
        return found

    async def _record(self, job: JsonObject, plan: Plan) -> bool:
        """Write the row of a due time. True when this process is the one that runs it."""
        job_id = str(job["id"])
        if plan.action == "run":
            is_ours = await self._claim(job, plan.due_at)
            self._run.world.kill_point("cron.claimed")
            return is_ours
        is_new = await self._due_times.skip(job_id, plan.due_at, plan.reason)
        if is_new and plan.action == "give_up":
            text = f"{job.get('name')} ({job_id}) was missed: it was due at {job['next_run_at']}."
            await self._reporter.notify(job, plan.due_at, text)
        return False

    async def _claim(self, job: JsonObject, due_at: float) -> bool:
        id = "" if job.get("no_agent") else session_id(job["id"], due_at)
        return await self._due_times.claim(job["id"], due_at, session_id=id)

    def _corrected_jobs(self) -> list[JsonObject]:
        """The jobs, after runs were moved that a change of the clock or the time zone affects."""
        now, zone = self._run.world.clock.now(), self._zone
        jobs = self._store.all()
        if not any(correct(dict(job), now, zone) for job in jobs):
            return jobs
        with self._store.edit(wake=False) as jobs:
            moved = [job.get("name") for job in jobs if correct(job, now, zone)]
        log.warning("jobs moved with the clock or time zone", extra={"jobs": moved, "zone": zone})
        return jobs

    def _advance(self, plans: list[tuple[str, Plan]]) -> dict[str, JsonObject]:
        """Move the jobs to their next runs; returns them as they are now."""
        by_id = dict(plans)
        now, settings, zone = self._run.world.clock.now(), self._settings, self._zone
        with self._store.edit(wake=False) as jobs:
            for job in jobs:
                if (plan := by_id.get(str(job.get("id")))) is not None:
                    advance(job, plan, now=now, settings=settings, zone=zone)
        return {str(job.get("id")): job for job in jobs}

    async def _seconds_until_next(self) -> float:
        jobs, now = await asyncio.to_thread(self._store.all), self._run.world.clock.now()
        upcoming = [at for job in jobs if (at := due_time(job)) is not None]
        # What is due and was left waits for the end of a run, which wakes the scheduler.
        later = [at - now for at in upcoming if at > now]
        return min((float(self._settings.tick_seconds), *later))

    async def _take_over(self) -> None:
        """Continue the runs of processes that have died, and own ones that could not be ended."""
        mine, active = self._due_times.owner, set(self._tasks)
        opened = await self._due_times.open_runs()
        rows = [row for row in opened if row.owner == mine and (row.job, row.due_at) not in active]
        if any(row.owner != mine for row in opened):
            rows += await self._due_times.take_over()
        if not rows:
            return
        jobs = {str(job.get("id")): job for job in await asyncio.to_thread(self._store.all)}
        for row in rows:
            log.warning("a run is continued", extra={"job": row.job, "due_at": row.due_at})
            job = jobs.get(row.job) or {"id": row.job, "name": "a removed job"}
            self._launch(job, row.due_at, was_running=row.state == "running", row=row)

    def _launch(
        self, job: JsonObject, due_at: float, *, was_running: bool, row: DueTime | None = None
    ) -> None:
        key = (str(job["id"]), due_at)
        work = self._run_job(job, due_at, was_running=was_running, row=row)
        task = asyncio.ensure_future(work)
        self._tasks[key] = task
        task.add_done_callback(lambda _: self._on_end(key))

    def _on_end(self, key: tuple[str, float]) -> None:
        self._tasks.pop(key, None)
        self._signal.event.set()

    async def _run_job(
        self, job: JsonObject, due_at: float, *, was_running: bool, row: DueTime | None
    ) -> None:
        job_id, settings, zone = str(job["id"]), self._settings, self._zone
        try:
            if was_running and row is not None and not row.session_id:
                # Nobody can tell what the script has done.
                output = RunOutput(status="unknown", error=SCRIPT_DIED)
            else:
                await self._due_times.start(job_id, due_at)
                self._run.world.kill_point("cron.started")
                output = await self._executor.execute(
                    job, due_at, settings, was_running=was_running
                )
            finished = await self._reporter.report(job, due_at, output, settings, zone)
            self._run.world.kill_point("cron.before_end")
            facts = {"error": finished.error, "delivery": finished.delivery}
            await self._due_times.end(job_id, due_at, finished.state, **facts)
        except asyncio.CancelledError:
            if job.get("no_agent"):
                await asyncio.shield(self._due_times.end(job_id, due_at, "failed", error=STOPPED))
            raise
        except HermesError as error:
            # The row stays open: this process or another one continues the run.
            log.error("a run could not be recorded", extra={"job": job_id, "error": str(error)})
            await self._run.world.clock.sleep(settings.tick_seconds)
        except Exception as error:
            log.exception("a run crashed")
            text = f"The run crashed ({type(error).__name__}); see `hermes logs errors`."
            await self._due_times.end(job_id, due_at, "failed", error=text)
