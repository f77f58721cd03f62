"""`/api/jobs`: stores and lists scheduled jobs. Every response says whether a scheduler runs."""

from __future__ import annotations

from hermes.codec.json import plain
from hermes.codec.values import JsonObject
from hermes.surfaces.api.bodies import PauseBody
from hermes.surfaces.api.call import Answer, Call, answer
from hermes.surfaces.api.house import House
from hermes.surfaces.api.once import Ticket, keep_run, once


async def list_jobs(house: House, call: Call) -> Answer:
    disabled = call.query.get("include_disabled", "true") != "false"
    jobs = await house.jobs.all(disabled=disabled, whose=_whose(call))
    return answer({"jobs": jobs, "scheduler": await house.jobs.scheduler()})


async def add_job(house: House, call: Call) -> Answer:
    async def work(ticket: Ticket) -> Answer:
        given: JsonObject = plain(call.body)
        # The idempotency key determines the job id, so that a retry finds the same job.
        job_id = ticket.key[:12]
        await keep_run(house, ticket, f"job_{job_id}")
        job = await house.jobs.add(given, by=_who(call), id=job_id)
        return await _told(house, job, 201)

    return await once(house, call, work)


async def get_job(house: House, call: Call) -> Answer:
    return await _told(house, await house.jobs.get(call.names["id"], whose=_whose(call)))


async def change_job(house: House, call: Call) -> Answer:
    given: JsonObject = plain(call.body)
    job = await house.jobs.change(call.names["id"], given, whose=_whose(call))
    return await _told(house, job)


async def remove_job(house: House, call: Call) -> Answer:
    await house.jobs.remove(call.names["id"], whose=_whose(call))
    return answer({"id": call.names["id"], "deleted": True})


async def pause_job(house: House, call: Call) -> Answer:
    body: PauseBody = call.body
    job = await house.jobs.pause(call.names["id"], reason=body.reason or "", whose=_whose(call))
    return await _told(house, job)


async def resume_job(house: House, call: Call) -> Answer:
    return await _told(house, await house.jobs.resume(call.names["id"], whose=_whose(call)))


async def run_job(house: House, call: Call) -> Answer:
    """Make the job due now; a scheduler starts it."""
    job = await house.jobs.run_now(call.names["id"], whose=_whose(call))
    return await _told(house, job, 202)


async def job_runs(house: House, call: Call) -> Answer:
    """The runs that a scheduler has recorded."""
    await house.jobs.get(call.names["id"], whose=_whose(call))
    return answer({"runs": [], "scheduler": await house.jobs.scheduler()})


async def _told(house: House, job: JsonObject, status: int = 200) -> Answer:
    return answer({"job": job, "scheduler": await house.jobs.scheduler()}, status)


def _who(call: Call) -> str:
    return f"api:{call.client.name}"


def _whose(call: Call) -> str:
    """The owner sees all jobs, other clients only their own."""
    return "" if call.client.is_owner else _who(call)
