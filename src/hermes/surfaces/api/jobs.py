"""Scheduled jobs over HTTP: the routes are here, the schedule is whoever is plugged in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from hermes.codec.json import plain
from hermes.codec.values import JsonObject
from hermes.surfaces.api.call import Answer, Call, answer
from hermes.surfaces.api.refusals import NO_RETRY, Refusal

if TYPE_CHECKING:
    from hermes.surfaces.api.house import House


class Jobs(Protocol):
    """What a scheduler offers. Jobs are plain objects with an `id`; NotFound and UsageError say
    what is wrong with a request."""

    async def list(self) -> list[JsonObject]: ...

    async def add(self, job: JsonObject) -> JsonObject: ...

    async def get(self, job_id: str) -> JsonObject: ...

    async def change(self, job_id: str, changes: JsonObject) -> JsonObject: ...

    async def remove(self, job_id: str) -> None: ...

    async def run_now(self, job_id: str) -> JsonObject: ...


async def list_jobs(house: House, call: Call) -> Answer:
    return answer({"jobs": await _jobs(house).list()})


async def add_job(house: House, call: Call) -> Answer:
    return answer(await _jobs(house).add(plain(call.body)), 201)


async def get_job(house: House, call: Call) -> Answer:
    return answer(await _jobs(house).get(call.names["id"]))


async def change_job(house: House, call: Call) -> Answer:
    return answer(await _jobs(house).change(call.names["id"], plain(call.body)))


async def remove_job(house: House, call: Call) -> Answer:
    await _jobs(house).remove(call.names["id"])
    return answer({"id": call.names["id"], "deleted": True})


async def run_job(house: House, call: Call) -> Answer:
    return answer(await _jobs(house).run_now(call.names["id"]), 202)


def _jobs(house: House) -> Jobs:
    if house.jobs is None:
        words = "This server has no scheduler."
        raise Refusal(501, "jobs_unavailable", words, headers=NO_RETRY)
    return house.jobs
