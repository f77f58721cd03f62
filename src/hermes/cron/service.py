"""The jobs of a home for every surface: one object that stores, changes and describes them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes.codec.values import JsonObject, Value
from hermes.config.cron_settings import CronSettings
from hermes.core.errors import NotFound, UsageError
from hermes.cron.delivery import WaitingOutput, WaitingOutputs
from hermes.cron.due import RunRequest, due_time, make_due
from hermes.cron.record import (
    Actor,
    JobChange,
    NewJob,
    change_record,
    check_job,
    convert_fields,
    find_job,
    match_jobs,
    new_record,
    schedule_fields,
    schedule_of,
    state_fields,
)
from hermes.cron.schedule import format_time, next_run, parse_schedule, zone_name
from hermes.cron.store import HEARTBEAT_SECONDS, NO_SCHEDULER, JobStore
from hermes.journal.due_times import DueTime, DueTimes

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.journal.journal import SqliteJournal

MOST_JOBS = 1_000
RECENT = 200
OWNER = Actor(by="cli")


class SchedulerState(Value):
    """Whether the jobs run, and what is owed."""

    running: bool
    note: str = ""
    heartbeat_age_s: float | None = None
    jobs: int = 0
    next_job: str = ""
    next_run_at: str | None = None
    unknown: tuple[DueTime, ...] = ()
    undelivered: tuple[DueTime, ...] = ()
    waiting: tuple[WaitingOutput, ...] = ()
    problems: tuple[str, ...] = ()


class CronService:
    """The jobs as an actor may see and change them. Raises NotFound and UsageError."""

    def __init__(self, run: RunContext, journal: SqliteJournal) -> None:
        self.store = JobStore(run.home, run.world)
        self.outbox = WaitingOutputs(self.store.folder / "outbox")
        self._run = run
        self._due_times = DueTimes(journal)
        self._has_journal = run.home.journal.exists

    @property
    def zone(self) -> str:
        return self._run.settings.timezone

    async def all(self, actor: Actor = OWNER, *, disabled: bool = True) -> list[JsonObject]:
        jobs = await asyncio.to_thread(self.store.all)
        return [job for job in jobs if actor.may_see(job) and (disabled or job.get("enabled"))]

    async def get(self, job_id: str, actor: Actor = OWNER) -> JsonObject:
        return find_job(await self.all(actor), job_id)

    async def find(self, reference: str, actor: Actor = OWNER) -> JsonObject:
        """The job that a person names by id, prefix of an id, or name."""
        found = match_jobs(await self.all(actor), reference)
        if not found:
            raise NotFound(f"There is no job {reference!r}; see `hermes cron list --all`.")
        if len(found) > 1:
            names = ", ".join(f"{job['id']} ({job.get('name')})" for job in found)
            raise UsageError(f"{reference!r} means several jobs: {names}; use an id.")
        return found[0]

    async def add(self, fields: JsonObject, actor: Actor, *, id: str = "") -> JsonObject:
        """Add a job; with an explicit `id`, repeated calls add it once."""
        new = convert_fields(NewJob, self._redact(fields))
        return await asyncio.to_thread(self._add, new, actor, id)

    async def change(self, job_id: str, fields: JsonObject, actor: Actor = OWNER) -> JsonObject:
        change = convert_fields(JobChange, self._redact(fields))
        await self.get(job_id, actor)
        return await asyncio.to_thread(self._change, job_id, change)

    async def pause(self, job_id: str, actor: Actor = OWNER, *, reason: str = "") -> JsonObject:
        await self.get(job_id, actor)
        now = format_time(self._now(), self.zone)
        changes = state_fields(enabled=False, now=now, reason=reason)
        return await asyncio.to_thread(self.store.update, job_id, changes)

    async def resume(self, job_id: str, actor: Actor = OWNER) -> JsonObject:
        """Resume a job; missed runs are not made up."""
        job = await self.get(job_id, actor)
        now = self._now()
        upcoming = next_run(schedule_of(job), now, zone=self.zone)
        if upcoming is None or (schedule_of(job).kind == "once" and upcoming < now):
            raise UsageError("This job has no further run; give it another schedule.")
        changes = state_fields(enabled=True) | {
            "next_run_at": format_time(upcoming, self.zone),
            "timezone": self.zone,
            "failure_streak": 0,
        }
        return await asyncio.to_thread(self.store.update, job_id, changes)

    async def run_now(
        self, job_id: str, actor: Actor = OWNER, *, request: RunRequest | None = None
    ) -> JsonObject:
        """Make the job due now, also while it is paused; the next regular run stays. The run gets
        the text of `request`; one with a known key changes nothing."""
        await self.get(job_id, actor)

        def work() -> JsonObject:
            with self.store.edit() as jobs:
                job = find_job(jobs, job_id)
                make_due(job, self._now(), self.zone, request)
            return job

        return await asyncio.to_thread(work)

    async def remove(self, job_id: str, actor: Actor = OWNER) -> JsonObject:
        job = await self.get(job_id, actor)

        def work() -> None:
            with self.store.edit() as jobs:
                jobs.remove(find_job(jobs, job_id))

        await asyncio.to_thread(work)
        return job

    async def runs(
        self, job_id: str = "", actor: Actor = OWNER, *, limit: int = 20
    ) -> tuple[DueTime, ...]:
        """The newest runs first; of all jobs with ""."""
        if job_id:
            await self.get(job_id, actor)
        if not self._has_journal():
            return ()
        found = await self._due_times.history(job_id, limit=limit)
        if job_id or actor.sees_all:
            return found
        visible = {job["id"] for job in await self.all(actor)}
        return tuple(run for run in found if run.job in visible)

    async def scheduler(self) -> JsonObject:
        """Return whether a scheduler runs, with an explanation if none does."""
        age = await asyncio.to_thread(self.store.heartbeat_age)
        if age is not None and age <= HEARTBEAT_SECONDS:
            return {"running": True, "heartbeat_age_s": round(age, 1)}
        return {"running": False, "note": NO_SCHEDULER}

    async def warning(self) -> str:
        """What to say to someone who stores a job; "" while a scheduler runs."""
        return str((await self.scheduler()).get("note", ""))

    async def state(self) -> SchedulerState:
        scheduler, jobs = await self.scheduler(), await self.all()
        active = [job for job in jobs if due_time(job) is not None]
        runs = await self.runs(limit=RECENT)
        upcoming = min(active, key=lambda job: due_time(job) or 0.0, default={})
        return SchedulerState(
            running=scheduler["running"],
            note=scheduler.get("note", ""),
            heartbeat_age_s=scheduler.get("heartbeat_age_s"),
            jobs=len(active),
            next_job=str(upcoming.get("name", "")),
            next_run_at=upcoming.get("next_run_at"),
            unknown=tuple(run for run in runs if run.state == "unknown"),
            undelivered=tuple(run for run in runs if run.delivery.startswith("failed")),
            waiting=tuple(await asyncio.to_thread(self.outbox.all)),
            problems=tuple(await asyncio.to_thread(self.store.problems)),
        )

    def describe(self, job: JsonObject) -> str:
        """The answer to whoever has stored a job: what, when, where to, so that a misread time is
        noticed."""
        upcoming = due_time(job)
        when = "paused" if upcoming is None else f"{job['next_run_at']} ({self._in(upcoming)})"
        return "\n".join(
            (
                f"Job {job['id']}: {job.get('name')}",
                f"schedule {job.get('schedule_display')} ({zone_name(self.zone)})",
                f"next run {when}",
                f"output to {job.get('deliver')}",
            )
        )

    def _in(self, moment: float) -> str:
        minutes = max(0, round((moment - self._now()) / 60))
        return f"in {minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"in {minutes} min"

    def _add(self, new: NewJob, actor: Actor, id: str) -> JsonObject:
        now = self._now()
        schedule = parse_schedule(
            new.schedule, now, zone=self.zone, least_seconds=self._settings.min_interval_seconds
        )
        job_id = id or f"{self._run.world.chance.getrandbits(48):012x}"
        job = new_record(new, schedule, actor, job_id, now)
        job |= schedule_fields(schedule, now, self.zone)
        with self.store.edit() as jobs:
            for stored in jobs:
                if stored.get("id") == id:
                    return stored
            if len(jobs) >= MOST_JOBS:
                raise UsageError(f"There are {MOST_JOBS} jobs, the maximum; delete one first.")
            check_job(job, self.store.scripts, jobs)
            jobs.append(job)
        return job

    def _change(self, job_id: str, change: JobChange) -> JsonObject:
        now, changes = self._now(), change_record(change)
        least = self._settings.min_interval_seconds
        with self.store.edit() as jobs:
            job = find_job(jobs, job_id)
            if change.schedule is not None:
                schedule = parse_schedule(change.schedule, now, zone=self.zone, least_seconds=least)
                changes |= schedule_fields(schedule, now, self.zone)
                if job.get("state") in ("completed", "error"):
                    changes |= state_fields(enabled=True)
                    changes["repeat"] = {**(job.get("repeat") or {}), "completed": 0}
            if change.enabled is not None:
                changes |= state_fields(enabled=change.enabled, now=format_time(now, self.zone))
            if change.repeat is not None:
                times = change.repeat if change.repeat > 0 else None
                changes["repeat"] = {**(job.get("repeat") or {}), "times": times}
            check_job({**job, **changes}, self.store.scripts, jobs)
            job.update(changes)
        return job

    def _redact(self, fields: JsonObject) -> JsonObject:
        if isinstance(prompt := fields.get("prompt"), str):
            return {**fields, "prompt": self._run.redactor.text(prompt)}
        return fields

    @property
    def _settings(self) -> CronSettings:
        return self._run.settings.cron

    def _now(self) -> float:
        return self._run.world.clock.now()
