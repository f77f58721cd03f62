"""Stores the scheduled jobs of a home in one file. A separate scheduler runs them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from msgspec import Meta

from hermes.codec.atomic_files import PRIVATE, replace_file
from hermes.codec.file_lock import hold_lock
from hermes.codec.json import DecodeError, convert, decode, encode
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.cron.schedule import Schedule, format_time, next_run, parse_schedule
from hermes.policy.threat_scan import scan_for_threats

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext

VERSION = 1
JOB_ID = r"[a-f0-9]{12}"
MOST_JOBS = 1_000
# A running scheduler writes its heartbeat at least this often.
HEARTBEAT_SECONDS = 180
NOBODY = "No scheduler is running in this home: jobs are stored but not started."

T = TypeVar("T")
Short = Annotated[str, Meta(max_length=200)]
PromptText = Annotated[str, Meta(min_length=1, max_length=5_000)]
ScheduleText = Annotated[str, Meta(min_length=1, max_length=200)]
SkillNames = Annotated[tuple[Short, ...], Meta(max_length=50)]


class NewJob(Value, forbid_unknown_fields=True):
    prompt: PromptText
    schedule: ScheduleText
    name: Short = ""
    deliver: Short = ""
    skills: SkillNames = ()
    repeat: int | None = None
    model: Short = ""
    provider: Short = ""
    paused: bool = False


class JobChange(Value, forbid_unknown_fields=True):
    """A change of a job; fields that are None stay unchanged."""

    prompt: PromptText | None = None
    schedule: ScheduleText | None = None
    name: Short | None = None
    deliver: Short | None = None
    skills: SkillNames | None = None
    repeat: int | None = None
    enabled: bool | None = None
    model: Short | None = None
    provider: Short | None = None


class _File(Value):
    version: int = VERSION
    updated_at: str = ""
    jobs: list[JsonObject] = []


class JobStore:
    """The file of jobs. It keeps unknown fields of a job. Every method rereads the file, because
    other processes change it."""

    def __init__(self, run: RunContext) -> None:
        self._folder = run.home.root / "cron"
        self._file = self._folder / "jobs.json"
        self._world = run.world

    def all(self, *, disabled: bool = True) -> list[JsonObject]:
        return [job for job in self._read().jobs if disabled or job.get("enabled")]

    def get(self, job_id: str) -> JsonObject:
        return _find_job(self._read().jobs, job_id)

    def add(self, new: NewJob, *, by: str, id: str = "") -> JsonObject:
        """Add a job; with `id`, adding is idempotent."""
        now = self._world.clock.now()
        self._check(new.prompt)
        schedule = parse_schedule(new.schedule, now)
        times = new.repeat if new.repeat and new.repeat > 0 else None
        job: JsonObject = {
            "id": id or f"{self._world.chance.getrandbits(48):012x}",
            "name": new.name or new.prompt[:50],
            "prompt": new.prompt,
            "skills": list(new.skills),
            "deliver": new.deliver or "local",
            "model": new.model,
            "provider": new.provider,
            "repeat": {
                "times": 1 if times is None and schedule.kind == "once" else times,
                "completed": 0,
            },
            "created_at": format_time(now),
            "created_by": by,
            "last_run_at": None,
            "last_status": None,
        }
        job |= _schedule_fields(schedule, now) | _state(enabled=not new.paused)
        with self._edit() as jobs:
            for stored in jobs:
                if stored.get("id") == id:
                    return stored
            if len(jobs) >= MOST_JOBS:
                raise UsageError(f"There are {MOST_JOBS} jobs, the maximum; delete one first.")
            jobs.append(job)
        return job

    def change(self, job_id: str, change: JobChange) -> JsonObject:
        now = self._world.clock.now()
        if change.prompt is not None:
            self._check(change.prompt)
        changes: JsonObject = {
            name: value
            for name in ("prompt", "name", "deliver", "model", "provider", "skills")
            if (value := getattr(change, name)) is not None
        }
        if change.schedule is not None:
            changes |= _schedule_fields(parse_schedule(change.schedule, now), now)
        if change.enabled is not None:
            changes |= _state(enabled=change.enabled, now=format_time(now))
        with self._edit() as jobs:
            job = _find_job(jobs, job_id)
            if change.repeat is not None:
                times = change.repeat if change.repeat > 0 else None
                changes["repeat"] = {**job.get("repeat", {}), "times": times}
            job.update(changes)
        return job

    def pause(self, job_id: str, *, reason: str = "") -> JsonObject:
        now = format_time(self._world.clock.now())
        return self._set(job_id, _state(enabled=False, now=now, reason=reason))

    def resume(self, job_id: str) -> JsonObject:
        """Resume a job; missed runs are not made up."""
        now = self._world.clock.now()
        with self._edit() as jobs:
            job = _find_job(jobs, job_id)
            moment = _upcoming(job, now)
            job.update(_state(enabled=True) | {"next_run_at": moment})
        return job

    def run_now(self, job_id: str) -> JsonObject:
        """Make the job due now."""
        now = format_time(self._world.clock.now())
        return self._set(job_id, {"next_run_at": now, "run_requested_at": now})

    def remove(self, job_id: str) -> None:
        with self._edit() as jobs:
            jobs.remove(_find_job(jobs, job_id))

    def scheduler(self) -> JsonObject:
        """Return whether a scheduler is running."""
        try:
            beat = float((self._folder / "ticker_heartbeat").read_text().strip())
        except (OSError, ValueError):
            beat = 0.0
        age = self._world.clock.now() - beat
        if age <= HEARTBEAT_SECONDS:
            return {"running": True, "heartbeat_age_s": round(age, 1)}
        return {"running": False, "note": NOBODY}

    def _check(self, prompt: str) -> None:
        if re.search("[\u200b-\u200f\u2060-\u2064\ufeff\U000e0000-\U000e007f]", prompt):
            raise UsageError("The prompt contains invisible characters; remove them.")
        if finding := scan_for_threats(prompt):
            raise UsageError(f"The prompt looks like an attack ({finding}); rephrase it.")

    def _set(self, job_id: str, changes: JsonObject) -> JsonObject:
        with self._edit() as jobs:
            job = _find_job(jobs, job_id)
            job.update(changes)
        return job

    def _read(self) -> _File:
        """Read the file; an unreadable one is set aside and its backup used."""
        try:
            return decode(_File, self._file.read_bytes())
        except FileNotFoundError:
            return _File()
        except DecodeError:
            aside = self._file.with_name(f"jobs.json.corrupt-{int(self._world.clock.now())}")
            self._file.replace(aside)
        try:
            return decode(_File, self._file.with_suffix(".json.bak").read_bytes())
        except (OSError, DecodeError):
            return _File()

    @contextmanager
    def _edit(self) -> Iterator[list[JsonObject]]:
        """Lock the file, yield the jobs and write them back."""
        try:
            with hold_lock(self._folder / ".jobs.lock"):
                stored = self._read()
                yield stored.jobs
                now = format_time(self._world.clock.now())
                data = encode(_File(updated_at=now, jobs=stored.jobs))
                if self._file.exists():
                    backup = self._file.with_suffix(".json.bak")
                    replace_file(backup, self._file.read_bytes(), mode=PRIVATE)
                replace_file(self._file, data, mode=PRIVATE)
        except OSError as error:
            raise HermesError(f"{self._file} cannot be written ({error.strerror}).") from error


def _find_job(jobs: list[JsonObject], job_id: str) -> JsonObject:
    for job in jobs if re.fullmatch(JOB_ID, job_id) else ():
        if job.get("id") == job_id:
            return job
    raise NotFound("There is no such job.")


def _schedule_fields(schedule: Schedule, now: float) -> JsonObject:
    moment = next_run(schedule, now)
    return {
        "schedule": {
            name: value
            for name in ("kind", "run_at", "seconds", "expr")
            if (value := getattr(schedule, name))
        },
        "schedule_display": schedule.display,
        "next_run_at": format_time(moment) if moment is not None else None,
    }


def _upcoming(job: JsonObject, now: float) -> str | None:
    kept: dict[str, Any] = job.get("schedule") or {}
    schedule = Schedule(display=str(job.get("schedule_display", "")), **kept)
    moment = next_run(schedule, now)
    return format_time(moment) if moment is not None else None


def _state(*, enabled: bool, now: str = "", reason: str = "") -> JsonObject:
    return {
        "enabled": enabled,
        "state": "scheduled" if enabled else "paused",
        "paused_at": None if enabled else now or None,
        "paused_reason": reason or None,
    }


class JobService:
    """The jobs for surfaces. Raises NotFound and UsageError. `creator` limits access to the jobs of
    one creator; "" gives access to all."""

    def __init__(self, run: RunContext) -> None:
        self._jobs = JobStore(run)
        self._redactor = run.redactor

    async def all(self, *, disabled: bool = True, creator: str = "") -> list[JsonObject]:
        jobs = await asyncio.to_thread(self._jobs.all, disabled=disabled)
        return [job for job in jobs if not creator or job.get("created_by") == creator]

    async def get(self, job_id: str, *, creator: str = "") -> JsonObject:
        job = await asyncio.to_thread(self._jobs.get, job_id)
        if creator and job.get("created_by") != creator:
            raise NotFound("There is no such job.")
        return job

    async def add(self, fields: JsonObject, *, by: str, id: str = "") -> JsonObject:
        """Add a job; with an explicit `id`, repeated calls add it once."""
        if isinstance(prompt := fields.get("prompt"), str):
            fields = {**fields, "prompt": self._redactor.text(prompt)}
        new = _convert(NewJob, fields)
        return await asyncio.to_thread(self._jobs.add, new, by=by, id=id)

    async def change(self, job_id: str, fields: JsonObject, *, creator: str = "") -> JsonObject:
        change = _convert(JobChange, fields)
        await self.get(job_id, creator=creator)
        return await asyncio.to_thread(self._jobs.change, job_id, change)

    async def pause(self, job_id: str, *, reason: str = "", creator: str = "") -> JsonObject:
        await self.get(job_id, creator=creator)
        return await asyncio.to_thread(self._jobs.pause, job_id, reason=reason)

    async def resume(self, job_id: str, *, creator: str = "") -> JsonObject:
        await self.get(job_id, creator=creator)
        return await asyncio.to_thread(self._jobs.resume, job_id)

    async def run_now(self, job_id: str, *, creator: str = "") -> JsonObject:
        await self.get(job_id, creator=creator)
        return await asyncio.to_thread(self._jobs.run_now, job_id)

    async def remove(self, job_id: str, *, creator: str = "") -> None:
        await self.get(job_id, creator=creator)
        await asyncio.to_thread(self._jobs.remove, job_id)

    async def scheduler(self) -> JsonObject:
        """Return whether a scheduler runs, with an explanation."""
        return await asyncio.to_thread(self._jobs.scheduler)


def _convert(kind: type[T], fields: JsonObject) -> T:
    try:
        return convert(kind, fields)
    except DecodeError as error:
        raise UsageError(f"Invalid job: {error}.") from error
