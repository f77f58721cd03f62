"""`/api/jobs`: stores, lists and starts scheduled jobs. Responses say whether a scheduler runs."""

from __future__ import annotations

from hermes.codec.json import plain
from hermes.codec.values import JsonObject
from hermes.cron.record import Actor
from hermes.hosting.idempotency import IdempotencyClaim
from hermes.surfaces.api.bodies import PauseBody
from hermes.surfaces.api.http import ApiRequest, ApiResponse, json_response
from hermes.surfaces.api.server_context import ServerContext, run_once

MAX_RUNS = 500


async def list_jobs(server: ServerContext, request: ApiRequest) -> ApiResponse:
    disabled = request.query.get("include_disabled", "true") != "false"
    jobs = await server.jobs.all(_actor(request), disabled=disabled)
    return json_response({"jobs": jobs, "scheduler": await server.jobs.scheduler()})


async def add_job(server: ServerContext, request: ApiRequest) -> ApiResponse:
    async def work(claim: IdempotencyClaim) -> ApiResponse:
        fields: JsonObject = plain(request.body)
        # The idempotency key determines the job id, so that a retry finds the same job.
        job_id = claim.key[:12]
        await server.idempotency.reserve_run(claim, f"job_{job_id}")
        job = await server.jobs.add(fields, _actor(request), id=job_id)
        return await _job_response(server, job, 201)

    return await run_once(server, request, work)


async def get_job(server: ServerContext, request: ApiRequest) -> ApiResponse:
    return await _job_response(server, await server.jobs.get(_job_id(request), _actor(request)))


async def change_job(server: ServerContext, request: ApiRequest) -> ApiResponse:
    changes: JsonObject = plain(request.body)
    job = await server.jobs.change(_job_id(request), changes, _actor(request))
    return await _job_response(server, job)


async def remove_job(server: ServerContext, request: ApiRequest) -> ApiResponse:
    await server.jobs.remove(_job_id(request), _actor(request))
    return json_response({"id": _job_id(request), "deleted": True})


async def pause_job(server: ServerContext, request: ApiRequest) -> ApiResponse:
    body: PauseBody = request.body
    job = await server.jobs.pause(_job_id(request), _actor(request), reason=body.reason or "")
    return await _job_response(server, job)


async def resume_job(server: ServerContext, request: ApiRequest) -> ApiResponse:
    return await _job_response(server, await server.jobs.resume(_job_id(request), _actor(request)))


async def run_job(server: ServerContext, request: ApiRequest) -> ApiResponse:
    """Make the job due now; a scheduler starts it."""
    job = await server.jobs.run_now(_job_id(request), _actor(request))
    return await _job_response(server, job, 202)


async def job_runs(server: ServerContext, request: ApiRequest) -> ApiResponse:
    """The runs of a job, newest first."""
    limit = request.query.get("limit", "20")
    number = min(int(limit), MAX_RUNS) if limit.isascii() and limit.isdigit() else 20
    runs = await server.jobs.runs(_job_id(request), _actor(request), limit=number)
    facts = [plain(run) for run in runs]
    return json_response({"runs": facts, "scheduler": await server.jobs.scheduler()})


async def _job_response(server: ServerContext, job: JsonObject, status: int = 200) -> ApiResponse:
    return json_response({"job": job, "scheduler": await server.jobs.scheduler()}, status)


def _job_id(request: ApiRequest) -> str:
    return request.path_params["id"]


def _actor(request: ApiRequest) -> Actor:
    """The owner sees all jobs, other clients only their own."""
    name = f"api:{request.client.name}"
    if request.client.is_owner:
        return Actor(by=name)
    return Actor(by=name, principal="member", person=name)
