"""Serves models, capabilities, toolsets and skills, and the health of the server."""

from __future__ import annotations

import asyncio
import shutil

from hermes.app.app import App
from hermes.codec.values import JsonObject
from hermes.core.errors import HermesError
from hermes.homes.toolsets import toolset_states
from hermes.surfaces.api.bodies import MAX_PARTS, MAX_TEXT_CHARS
from hermes.surfaces.api.http import (
    MAX_BODY_BYTES,
    HttpError,
    HttpRequest,
    HttpResponse,
    json_response,
)
from hermes.surfaces.api.server_context import ServerContext
from hermes.tools.toolbox import wanted_names
from hermes.version import __version__

MODEL_SECONDS = 2.0
LEAST_FREE = 100 * 1024 * 1024
TEXT = ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),)


async def health(house: ServerContext, call: HttpRequest) -> HttpResponse:
    return json_response({"status": "ok", "platform": "hermes-agent"})


async def ready(house: ServerContext, call: HttpRequest) -> HttpResponse:
    """503 when the server accepts no turns or cannot store them."""
    states = await _readiness(house)
    is_ready = not house.admission.is_draining and all(state == "ok" for state in states.values())
    return json_response({"status": "ready" if is_ready else "not_ready"}, 200 if is_ready else 503)


async def detailed(house: ServerContext, call: HttpRequest) -> HttpResponse:
    states = await _readiness(house) | {"model": await _model(house)}
    is_well = all(state == "ok" for state in states.values())
    admission, runner = house.admission, house.runner
    return json_response(
        {
            "status": "ok" if is_well else "degraded",
            "version": __version__,
            "uptime_s": round(house.metrics.uptime, 1),
            "readiness": states,
            "gateway": {
                "state": "draining" if admission.is_draining else "running",
                "platforms": {"api_server": "connected"},
            },
            "runs": {
                "active": admission.active,
                "queued": runner.queued,
                "started": runner.started,
            },
            "sessions": {"open": house.pool.open_sessions},
            "background": {"processes": await house.pool.processes()},
            "streams": house.metrics.streams,
            "event_loop_worst_lag_ms": round(house.metrics.worst_lag * 1000, 1),
            "cron": await _cron(house),
        }
    )


async def _cron(house: ServerContext) -> JsonObject:
    """States and counts only."""
    scheduler = await house.jobs.scheduler()
    jobs = len(await house.jobs.all())
    return {
        "running": scheduler["running"],
        "ticker_age_s": scheduler.get("heartbeat_age_s"),
        "jobs": jobs,
    }


async def metrics(house: ServerContext, call: HttpRequest) -> HttpResponse:
    gauges = {
        "hermes_runs_active": float(house.admission.active),
        "hermes_runs_queued": float(house.admission.queued),
        "hermes_sessions_open": float(house.pool.open_sessions),
    }
    text = house.metrics.text(gauges, house.runner.endings)
    return HttpResponse(status=200, body=text.encode(), headers=TEXT)


async def _readiness(house: ServerContext) -> dict[str, str]:
    return {
        "config": "ok" if not _has_faults(house) else "error",
        "state_db": await _journal(house),
        "store": await _store(house),
        "disk": await asyncio.to_thread(_disk, house),
    }


def _has_faults(house: ServerContext) -> bool:
    return any(finding.level == "error" for finding in house.app.run.config.diagnostics)


async def _journal(house: ServerContext) -> str:
    try:
        await house.app.archive.recent(limit=1)
    except HermesError:
        return "error"
    return "ok"


async def _model(house: ServerContext) -> str:
    """Whether a model is configured; sends no request."""
    try:
        async with asyncio.timeout(MODEL_SECONDS):
            await house.app.models.choose()
    except (HermesError, TimeoutError):
        return "error"
    return "ok"


async def _store(house: ServerContext) -> str:
    try:
        await house.store.run(lambda db: db.execute("SELECT 1").fetchone())
    except HermesError:
        return "error"
    return "ok"


def _disk(house: ServerContext) -> str:
    try:
        return "ok" if shutil.disk_usage(house.app.run.home.root).free > LEAST_FREE else "low"
    except OSError:
        return "error"


async def list_models(house: ServerContext, call: HttpRequest) -> HttpResponse:
    names = dict.fromkeys((house.model_name, *house.app.run.settings.model_aliases))
    return json_response(
        {"object": "list", "data": [_discovery_model(house, name) for name in names]}
    )


async def show_model(house: ServerContext, call: HttpRequest) -> HttpResponse:
    name = call.path_params["id"]
    if name != house.model_name and name not in house.app.run.settings.model_aliases:
        raise HttpError(404, "model_not_found", "There is no such model.", param="model")
    return json_response(_discovery_model(house, name))


async def capabilities(house: ServerContext, call: HttpRequest) -> HttpResponse:
    settings = house.settings
    return json_response(
        {
            "object": "hermes.api_server.capabilities",
            "version": __version__,
            "model": house.model_name,
            "auth": {"type": "bearer", "required": True, "scopes": list(call.client.scopes)},
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


async def openapi(house: ServerContext, call: HttpRequest) -> HttpResponse:
    return HttpResponse(status=200, body=house.document())


async def toolsets(house: ServerContext, call: HttpRequest) -> HttpResponse:
    """The toolsets a run may choose, and the default tools of a session."""
    settings = house.app.run.settings
    names = house.app.tools.filter_known(wanted_names(settings, platform="api"))
    told = [
        {"name": each.name, "tools": [tool for tool in each.tools if tool in names]}
        for each in toolset_states(settings, "api")
        if each.enabled or each.partly
    ]
    enabled = settings.platform_toolsets.get("api", settings.toolsets)
    return json_response(
        {"object": "list", "data": told, "enabled": list(enabled), "tools": list(names)}
    )


async def skills(house: ServerContext, call: HttpRequest) -> HttpResponse:
    """The skills that the agent can use here."""
    return json_response({"object": "list", "data": await asyncio.to_thread(_skills, house.app)})


def _skills(app: App) -> list[JsonObject]:
    return [
        {
            "name": entry.name,
            "description": entry.skill.description,
            "category": entry.category,
            "source": entry.kind,
        }
        for entry in app.skills(app.run.settings.terminal.cwd).list_usable("api")
    ]


def _discovery_model(house: ServerContext, name: str) -> dict[str, object]:
    return {
        "id": name,
        "object": "model",
        "created": int(house.metrics.started_at),
        "owned_by": "hermes",
        "permission": [],
        "root": name,
        "parent": None,
    }
