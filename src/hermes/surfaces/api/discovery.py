"""Serves models, capabilities, toolsets and skills, and the health of the server."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable

from hermes.core.errors import HermesError
from hermes.homes.toolsets import toolset_states
from hermes.surfaces.api.bodies import MAX_PARTS, MAX_TEXT_CHARS
from hermes.surfaces.api.http import (
    MAX_BODY_BYTES,
    ApiRequest,
    ApiResponse,
    HttpError,
    json_response,
)
from hermes.surfaces.api.server_context import ServerContext
from hermes.tools.toolbox import wanted_names
from hermes.version import __version__

MODEL_SECONDS = 2.0
LEAST_FREE = 100 * 1024 * 1024
TEXT = ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),)


async def health(server: ServerContext, request: ApiRequest) -> ApiResponse:
    return json_response({"status": "ok", "platform": "hermes-agent"})


async def ready(server: ServerContext, request: ApiRequest) -> ApiResponse:
    """503 when the server accepts no turns or cannot store them."""
    states = await _readiness(server)
    is_ready = not server.admission.is_draining and all(state == "ok" for state in states.values())
    return json_response({"status": "ready" if is_ready else "not_ready"}, 200 if is_ready else 503)


async def detailed(server: ServerContext, request: ApiRequest) -> ApiResponse:
    # Whether a model is configured; sends no request.
    model = await _state(server.app.models.choose(), MODEL_SECONDS)
    states = await _readiness(server) | {"model": model}
    is_well = all(state == "ok" for state in states.values())
    admission, executor = server.admission, server.run_executor
    scheduler = await server.jobs.scheduler()
    return json_response(
        {
            "status": "ok" if is_well else "degraded",
            "version": __version__,
            "uptime_s": round(server.metrics.uptime, 1),
            "readiness": states,
            "gateway": {
                "state": "draining" if admission.is_draining else "running",
                "platforms": {"api_server": "connected"},
            },
            "runs": {
                "active": admission.active,
                "queued": executor.queued,
                "started": executor.started,
            },
            "sessions": {"open": server.pool.open_sessions},
            "background": {"processes": await server.pool.processes()},
            "streams": server.metrics.streams,
            "event_loop_worst_lag_ms": round(server.metrics.worst_lag * 1000, 1),
            "cron": {
                "running": scheduler["running"],
                "ticker_age_s": scheduler.get("heartbeat_age_s"),
                "jobs": len(await server.jobs.all()),
            },
        }
    )


async def metrics(server: ServerContext, request: ApiRequest) -> ApiResponse:
    gauges = {
        "hermes_runs_active": float(server.admission.active),
        "hermes_runs_queued": float(server.admission.queued),
        "hermes_sessions_open": float(server.pool.open_sessions),
    }
    text = server.metrics.text(gauges, server.run_executor.endings)
    return ApiResponse(status=200, body=text.encode(), headers=TEXT)


async def _readiness(server: ServerContext) -> dict[str, str]:
    findings = server.app.context.config.diagnostics
    return {
        "config": "error" if any(each.level == "error" for each in findings) else "ok",
        "state_db": await _state(server.app.archive.recent(limit=1)),
        "store": await _state(server.store.run(lambda db: db.execute("SELECT 1").fetchone())),
        "disk": await asyncio.to_thread(_disk, server),
    }


async def _state(check: Awaitable[object], seconds: float | None = None) -> str:
    try:
        async with asyncio.timeout(seconds):
            await check
    except (HermesError, TimeoutError):
        return "error"
    return "ok"


def _disk(server: ServerContext) -> str:
    try:
        return "ok" if shutil.disk_usage(server.app.context.home.root).free > LEAST_FREE else "low"
    except OSError:
        return "error"


async def list_models(server: ServerContext, request: ApiRequest) -> ApiResponse:
    names = dict.fromkeys((server.model_name, *server.app.context.settings.model_aliases))
    return json_response(
        {"object": "list", "data": [_discovery_model(server, name) for name in names]}
    )


async def show_model(server: ServerContext, request: ApiRequest) -> ApiResponse:
    name = request.path_params["id"]
    if name != server.model_name and name not in server.app.context.settings.model_aliases:
        raise HttpError(404, "model_not_found", "There is no such model.", param="model")
    return json_response(_discovery_model(server, name))


async def capabilities(server: ServerContext, request: ApiRequest) -> ApiResponse:
    settings = server.settings
    return json_response(
        {
            "object": "hermes.api_server.capabilities",
            "version": __version__,
            "model": server.model_name,
            "auth": {"type": "bearer", "required": True, "scopes": list(request.client.scopes)},
            "features": {
                "chat_completions": True,
                "chat_completions_streaming": True,
                "responses_api": True,
                "responses_streaming": True,
                "runs": True,
                "run_events_resume": True,
                "run_stop": True,
                "run_approval": True,
                "run_steer": True,
                "jobs": True,
                "sessions": True,
                "tool_progress_events": True,
                "reasoning_streaming": settings.show_reasoning,
                "idempotency": True,
                "inline_media": settings.inline_media,
                "image_urls": True,
                "run_toolsets": True,
                "session_id_header": "X-Hermes-Session-Id",
                "session_key_header": "X-Hermes-Session-Key",
            },
            "limits": {
                "max_body_bytes": MAX_BODY_BYTES,
                "max_text_chars": MAX_TEXT_CHARS,
                "max_content_parts": MAX_PARTS,
                "max_concurrent_runs": settings.max_concurrent_runs,
                "max_queued_runs": settings.max_queued_runs,
                "stored_responses": settings.stored_responses,
            },
        }
    )


async def toolsets(server: ServerContext, request: ApiRequest) -> ApiResponse:
    """The toolsets a run may choose, and the default tools of a session."""
    settings = server.app.context.settings
    names = server.app.tools.filter_known(wanted_names(settings, platform="api"))
    data = [
        {"name": each.name, "tools": [tool for tool in each.tools if tool in names]}
        for each in toolset_states(settings, "api")
        if each.enabled or each.partly
    ]
    enabled = settings.platform_toolsets.get("api", settings.toolsets)
    return json_response(
        {"object": "list", "data": data, "enabled": list(enabled), "tools": list(names)}
    )


async def skills(server: ServerContext, request: ApiRequest) -> ApiResponse:
    """The skills that the agent can use here."""
    cwd = server.app.context.settings.terminal.cwd
    usable = await asyncio.to_thread(lambda: server.app.skills(cwd).list_usable("api"))
    data = [
        {
            "name": entry.name,
            "description": entry.skill.description,
            "category": entry.category,
            "source": entry.kind,
        }
        for entry in usable
    ]
    return json_response({"object": "list", "data": data})


def _discovery_model(server: ServerContext, name: str) -> dict[str, object]:
    return {
        "id": name,
        "object": "model",
        "created": int(server.metrics.started_at),
        "owned_by": "hermes",
        "permission": [],
        "root": name,
        "parent": None,
    }
