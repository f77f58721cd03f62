"""Stores the scheduled jobs of a home in one file. A separate scheduler runs them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from hermes.codec.atomic_files import PRIVATE, replace_file
from hermes.codec.file_lock import hold_lock
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.core.world import World
from hermes.cron.schedule import Schedule, format_time, next_run, parse_schedule

VERSION = 1
JOB_ID = r"[a-f0-9]{12}"
MOST_JOBS = 1_000
# A running scheduler writes its heartbeat at least this often.
HEARTBEAT_SECONDS = 180
NOBODY = "No scheduler is running in this home: jobs are stored but not started."

Scan = Callable[[str], str]
Short = Annotated[str, Meta(max_length=200)]


class NewJob(Value, forbid_unknown_fields=True):
    prompt: Annotated[str, Meta(min_length=1, max_length=5_000)]
    schedule: Annotated[str, Meta(min_length=1, max_length=200)]
    name: Short = ""
    deliver: Short = ""
    skills: Annotated[tuple[Short, ...], Meta(max_length=50)] = ()
    repeat: int | None = None
    model: Short = ""
    provider: Short = ""
    paused: bool = False


class JobChange(Value, forbid_unknown_fields=True):
    """Fields that are None stay unchanged."""

    prompt: Annotated[str, Meta(min_length=1, max_length=5_000)] | None = None
    schedule: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    name: Short | None = None
    deliver: Short | None = None
    skills: Annotated[tuple[Short, ...], Meta(max_length=50)] | None = None
    repeat: int | None = None
    enabled: bool | None = None
    model: Short | None = None
    provider: Short | None = None


class _File(Value):
    version: int = VERSION
    updated_at: str = ""
    jobs: list[JsonObject] = []


class JobStore:
    """`scan` returns what looks like an attack in a prompt, or "". Unknown fields of a job are
    kept. Every method rereads the file, because other processes change it."""

    def __init__(self, folder: Path, world: World, *, scan: Scan = lambda _text: "") -> None:
        self._folder = folder
        self._file = folder / "jobs.json"
        self._world = world
        self._scan = scan

    def all(self, *, disabled: bool = True) -> list[JsonObject]:
        return [job for job in self._read().jobs if disabled or job.get("enabled")]

    def get(self, job_id: str) -> JsonObject:
        return _find_job(self._read().jobs, job_id)

    def add(self, new: NewJob, *, by: str, id: str = "") -> JsonObject:
        """Adds a job; with `id`, adding is idempotent."""
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
                raise UsageError(f"There are already {MOST_JOBS} jobs, the maximum.")
            jobs.append(job)
        return job

    def change(self, job_id: str, change: JobChange) -> JsonObject:
        now = self._world.clock.now()
        if change.prompt is not None:
            self._check(change.prompt)
        plain = {name: getattr(change, name) for name in ("prompt", "name", "deliver", "model",
                 "provider", "skills")}  # fmt: skip
        changes: JsonObject = {name: value for name, value in plain.items() if value is not None}
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
        """Resumes a job; missed runs are not made up."""
        now = self._world.clock.now()
        with self._edit() as jobs:
            job = _find_job(jobs, job_id)
            moment = _upcoming(job, now)
            job.update(_state(enabled=True) | {"next_run_at": moment})
        return job

    def run_now(self, job_id: str) -> JsonObject:
        """Makes the job due now."""
        now = format_time(self._world.clock.now())
        return self._set(job_id, {"next_run_at": now, "run_requested_at": now})

    def remove(self, job_id: str) -> None:
        with self._edit() as jobs:
            jobs.remove(_find_job(jobs, job_id))

    def scheduler(self) -> JsonObject:
        """Returns whether a scheduler is running."""
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
            raise UsageError("The prompt contains invisible characters.")
        if finding := self._scan(prompt):
            raise UsageError(f"The prompt looks like an attack ({finding}).")

    def _set(self, job_id: str, changes: JsonObject) -> JsonObject:
        with self._edit() as jobs:
            job = _find_job(jobs, job_id)
            job.update(changes)
        return job

    def _read(self) -> _File:
        """Reads the file; an unreadable one is set aside and its backup used."""
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
        """Locks the file, yields the jobs and writes them back."""
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
            raise HermesError(f"{self._file} cannot be written: {error.strerror}.") from error


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
