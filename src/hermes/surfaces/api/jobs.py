"""`/api/jobs`: stores and lists scheduled jobs. Every response says whether a scheduler runs."""

from __future__ import annotations

from hermes.codec.json import plain
from hermes.codec.values import JsonObject
from hermes.hosting.idempotency import IdempotencyClaim
from hermes.surfaces.api.bodies import PauseBody
from hermes.surfaces.api.http import ApiRequest, ApiResponse, json_response
from hermes.surfaces.api.server_context import ServerContext, run_once


async def list_jobs(server: ServerContext, request: ApiRequest) -> ApiResponse:
    disabled = request.query.get("include_disabled", "true") != "false"
    jobs = await server.jobs.all(disabled=disabled, creator=_visible_jobs(request))
    return json_response({"jobs": jobs, "scheduler": await server.jobs.scheduler()})


async def add_job(server: ServerContext, request: ApiRequest) -> ApiResponse:
    async def work(claim: IdempotencyClaim) -> ApiResponse:
        fields: JsonObject = plain(request.body)
        # The idempotency key determines the job id, so that a retry finds the same job.
        job_id = claim.key[:12]
        await server.idempotency.reserve_run(claim, f"job_{job_id}")
        job = await server.jobs.add(fields, by=_client_name(request), id=job_id)
        return await _job_response(server, job, 201)

    return await run_once(server, request, work)


async def get_job(server: ServerContext, request: ApiRequest) -> ApiResponse:
    return await _job_response(
        server, await server.jobs.get(request.path_params["id"], creator=_visible_jobs(request))
    )


async def change_job(server: ServerContext, request: ApiRequest) -> ApiResponse:
    changes: JsonObject = plain(request.body)
    job = await server.jobs.change(
        request.path_params["id"], changes, creator=_visible_jobs(request)
    )
    return await _job_response(server, job)


async def remove_job(server: ServerContext, request: ApiRequest) -> ApiResponse:
    await server.jobs.remove(request.path_params["id"], creator=_visible_jobs(request))
    return json_response({"id": request.path_params["id"], "deleted": True})


async def pause_job(server: ServerContext, request: ApiRequest) -> ApiResponse:
    body: PauseBody = request.body
    job = await server.jobs.pause(
        request.path_params["id"], reason=body.reason or "", creator=_visible_jobs(request)
    )
    return await _job_response(server, job)


async def resume_job(server: ServerContext, request: ApiRequest) -> ApiResponse:
    return await _job_response(
        server, await server.jobs.resume(request.path_params["id"], creator=_visible_jobs(request))
    )


async def run_job(server: ServerContext, request: ApiRequest) -> ApiResponse:
    """Make the job due now; a scheduler starts it."""
    job = await server.jobs.run_now(request.path_params["id"], creator=_visible_jobs(request))
    return await _job_response(server, job, 202)


async def job_runs(server: ServerContext, request: ApiRequest) -> ApiResponse:
    """The runs that a scheduler has recorded."""
    await server.jobs.get(request.path_params["id"], creator=_visible_jobs(request))
    return json_response({"runs": [], "scheduler": await server.jobs.scheduler()})


async def _job_response(server: ServerContext, job: JsonObject, status: int = 200) -> ApiResponse:
    return json_response({"job": job, "scheduler": await server.jobs.scheduler()}, status)


def _client_name(request: ApiRequest) -> str:
    return f"api:{request.client.name}"


def _visible_jobs(request: ApiRequest) -> str:
    """The owner sees all jobs, other clients only their own."""
    return "" if request.client.is_owner else _client_name(request)
