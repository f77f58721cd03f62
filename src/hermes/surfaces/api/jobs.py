"""`/api/jobs`: stores and lists scheduled jobs. Every response says whether a scheduler runs."""

from __future__ import annotations

from hermes.codec.json import plain
from hermes.codec.values import JsonObject
from hermes.hosting.idempotency import IdempotencyClaim
from hermes.surfaces.api.bodies import PauseBody
from hermes.surfaces.api.http import HttpRequest, HttpResponse, json_response
from hermes.surfaces.api.idempotency_key import run_once
from hermes.surfaces.api.server_context import ServerContext


async def list_jobs(house: ServerContext, call: HttpRequest) -> HttpResponse:
    disabled = call.query.get("include_disabled", "true") != "false"
    jobs = await house.jobs.all(disabled=disabled, whose=_visible_jobs(call))
    return json_response({"jobs": jobs, "scheduler": await house.jobs.scheduler()})


async def add_job(house: ServerContext, call: HttpRequest) -> HttpResponse:
    async def work(ticket: IdempotencyClaim) -> HttpResponse:
        given: JsonObject = plain(call.body)
        # The idempotency key determines the job id, so that a retry finds the same job.
        job_id = ticket.key[:12]
        await house.idempotency.reserve_run(ticket, f"job_{job_id}")
        job = await house.jobs.add(given, by=_client_name(call), id=job_id)
        return await _job_response(house, job, 201)

    return await run_once(house, call, work)


async def get_job(house: ServerContext, call: HttpRequest) -> HttpResponse:
    return await _job_response(
        house, await house.jobs.get(call.path_params["id"], whose=_visible_jobs(call))
    )


async def change_job(house: ServerContext, call: HttpRequest) -> HttpResponse:
    given: JsonObject = plain(call.body)
    job = await house.jobs.change(call.path_params["id"], given, whose=_visible_jobs(call))
    return await _job_response(house, job)


async def remove_job(house: ServerContext, call: HttpRequest) -> HttpResponse:
    await house.jobs.remove(call.path_params["id"], whose=_visible_jobs(call))
    return json_response({"id": call.path_params["id"], "deleted": True})


async def pause_job(house: ServerContext, call: HttpRequest) -> HttpResponse:
    body: PauseBody = call.body
    job = await house.jobs.pause(
        call.path_params["id"], reason=body.reason or "", whose=_visible_jobs(call)
    )
    return await _job_response(house, job)


async def resume_job(house: ServerContext, call: HttpRequest) -> HttpResponse:
    return await _job_response(
        house, await house.jobs.resume(call.path_params["id"], whose=_visible_jobs(call))
    )


async def run_job(house: ServerContext, call: HttpRequest) -> HttpResponse:
    """Make the job due now; a scheduler starts it."""
    job = await house.jobs.run_now(call.path_params["id"], whose=_visible_jobs(call))
    return await _job_response(house, job, 202)


async def job_runs(house: ServerContext, call: HttpRequest) -> HttpResponse:
    """The runs that a scheduler has recorded."""
    await house.jobs.get(call.path_params["id"], whose=_visible_jobs(call))
    return json_response({"runs": [], "scheduler": await house.jobs.scheduler()})


async def _job_response(house: ServerContext, job: JsonObject, status: int = 200) -> HttpResponse:
    return json_response({"job": job, "scheduler": await house.jobs.scheduler()}, status)


def _client_name(call: HttpRequest) -> str:
    return f"api:{call.client.name}"


def _visible_jobs(call: HttpRequest) -> str:
    """The owner sees all jobs, other clients only their own."""
    return "" if call.client.is_owner else _client_name(call)
