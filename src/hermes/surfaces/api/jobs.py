"""`/api/jobs`: stores and lists scheduled jobs. Every response says whether a scheduler runs."""

from __future__ import annotations

from hermes.codec.json import plain
from hermes.codec.values import JsonObject
from hermes.hosting.idempotency import IdempotencyClaim
from hermes.surfaces.api.bodies import PauseBody
from hermes.surfaces.api.http import ApiRequest, ApiResponse, json_response
from hermes.surfaces.api.server_context import ServerContext, run_once


async def list_jobs(server: ServerContext, call: ApiRequest) -> ApiResponse:
    disabled = call.query.get("include_disabled", "true") != "false"
    jobs = await server.jobs.all(disabled=disabled, creator=_visible_jobs(call))
    return json_response({"jobs": jobs, "scheduler": await server.jobs.scheduler()})


async def add_job(server: ServerContext, call: ApiRequest) -> ApiResponse:
    async def work(claim: IdempotencyClaim) -> ApiResponse:
        given: JsonObject = plain(call.body)
        # The idempotency key determines the job id, so that a retry finds the same job.
        job_id = claim.key[:12]
        await server.idempotency.reserve_run(claim, f"job_{job_id}")
        job = await server.jobs.add(given, by=_client_name(call), id=job_id)
        return await _job_response(server, job, 201)

    return await run_once(server, call, work)


async def get_job(server: ServerContext, call: ApiRequest) -> ApiResponse:
    return await _job_response(
        server, await server.jobs.get(call.path_params["id"], creator=_visible_jobs(call))
    )


async def change_job(server: ServerContext, call: ApiRequest) -> ApiResponse:
    given: JsonObject = plain(call.body)
    job = await server.jobs.change(call.path_params["id"], given, creator=_visible_jobs(call))
    return await _job_response(server, job)


async def remove_job(server: ServerContext, call: ApiRequest) -> ApiResponse:
    await server.jobs.remove(call.path_params["id"], creator=_visible_jobs(call))
    return json_response({"id": call.path_params["id"], "deleted": True})


async def pause_job(server: ServerContext, call: ApiRequest) -> ApiResponse:
    body: PauseBody = call.body
    job = await server.jobs.pause(
        call.path_params["id"], reason=body.reason or "", creator=_visible_jobs(call)
    )
    return await _job_response(server, job)


async def resume_job(server: ServerContext, call: ApiRequest) -> ApiResponse:
    return await _job_response(
        server, await server.jobs.resume(call.path_params["id"], creator=_visible_jobs(call))
    )


async def run_job(server: ServerContext, call: ApiRequest) -> ApiResponse:
    """Make the job due now; a scheduler starts it."""
    job = await server.jobs.run_now(call.path_params["id"], creator=_visible_jobs(call))
    return await _job_response(server, job, 202)


async def job_runs(server: ServerContext, call: ApiRequest) -> ApiResponse:
    """The runs that a scheduler has recorded."""
    await server.jobs.get(call.path_params["id"], creator=_visible_jobs(call))
    return json_response({"runs": [], "scheduler": await server.jobs.scheduler()})


async def _job_response(server: ServerContext, job: JsonObject, status: int = 200) -> ApiResponse:
    return json_response({"job": job, "scheduler": await server.jobs.scheduler()}, status)


def _client_name(call: ApiRequest) -> str:
    return f"api:{call.client.name}"


def _visible_jobs(call: ApiRequest) -> str:
    """The owner sees all jobs, other clients only their own."""
    return "" if call.client.is_owner else _client_name(call)
