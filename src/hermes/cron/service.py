"""The scheduled jobs of a home, for surfaces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from hermes.codec.json import DecodeError, convert
from hermes.codec.values import JsonObject
from hermes.core.errors import NotFound, UsageError
from hermes.cron.jobs import JobChange, JobStore, NewJob
from hermes.policy.threat_scan import scan_for_threats

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext

T = TypeVar("T")
FOLDER = "cron"


def jobs_of(run: RunContext) -> JobStore:
    return JobStore(run.home.root / FOLDER, run.world, scan=scan_for_threats)


class JobService:
    """Raises NotFound and UsageError. `creator` limits access to the jobs of one creator; ""
    gives access to all."""

    def __init__(self, run: RunContext) -> None:
        self._jobs = jobs_of(run)
        self._redact: Callable[[str], str] = run.redactor.text

    async def all(self, *, disabled: bool = True, creator: str = "") -> list[JsonObject]:
        found = await asyncio.to_thread(self._jobs.all, disabled=disabled)
        return [job for job in found if not creator or job.get("created_by") == creator]

    async def get(self, job_id: str, *, creator: str = "") -> JsonObject:
        job = await asyncio.to_thread(self._jobs.get, job_id)
        if creator and job.get("created_by") != creator:
            raise NotFound("There is no such job.")
        return job

    async def add(self, fields: JsonObject, *, by: str, id: str = "") -> JsonObject:
        """Adds a job; with an explicit `id`, repeated calls add it once."""
        if isinstance(prompt := fields.get("prompt"), str):
            fields = {**fields, "prompt": self._redact(prompt)}
        new = _read(NewJob, fields)
        return await asyncio.to_thread(self._jobs.add, new, by=by, id=id)

    async def change(self, job_id: str, fields: JsonObject, *, creator: str = "") -> JsonObject:
        change = _read(JobChange, fields)
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
        """Returns whether a scheduler runs, with an explanation."""
        return await asyncio.to_thread(self._jobs.scheduler)


def _read(kind: type[T], fields: JsonObject) -> T:
    try:
        return convert(kind, fields)
    except DecodeError as error:
        raise UsageError(f"Invalid job: {error}.") from error
