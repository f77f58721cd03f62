"""Serves liveness, readiness and health details: states and counts, never contents."""

from __future__ import annotations

import asyncio
import shutil

from hermes.codec.values import JsonObject
from hermes.core.errors import HermesError
from hermes.surfaces.api.call import HttpRequest, HttpResponse, json_response
from hermes.surfaces.api.house import ServerContext
from hermes.version import __version__

MODEL_SECONDS = 2.0
LEAST_FREE = 100 * 1024 * 1024
TEXT = ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),)


async def health(house: ServerContext, call: HttpRequest) -> HttpResponse:
    return json_response({"status": "ok", "platform": "hermes-agent"})


async def ready(house: ServerContext, call: HttpRequest) -> HttpResponse:
    """503 when the server accepts no turns or cannot store them."""
    states = await _readiness(house)
    is_ready = not house.pool.is_draining and all(state == "ok" for state in states.values())
    return json_response({"status": "ready" if is_ready else "not_ready"}, 200 if is_ready else 503)


async def detailed(house: ServerContext, call: HttpRequest) -> HttpResponse:
    states = await _readiness(house) | {"model": await _model(house)}
    is_well = all(state == "ok" for state in states.values())
    desk = house.pool
    return json_response(
        {
            "status": "ok" if is_well else "degraded",
            "version": __version__,
            "uptime_s": round(house.metrics.uptime, 1),
            "readiness": states,
            "gateway": {
                "state": "draining" if desk.is_draining else "running",
                "platforms": {"api_server": "connected"},
            },
            "runs": {"active": desk.active, "queued": desk.queued, "started": desk.started},
            "sessions": {"open": desk.open_sessions},
            "background": {"processes": await desk.processes()},
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
        "hermes_runs_active": float(house.pool.active),
        "hermes_sessions_open": float(house.pool.open_sessions),
    }
    text = house.metrics.text(gauges, house.pool.endings)
    return HttpResponse(status=200, body=text.encode(), headers=TEXT)


async def _readiness(house: ServerContext) -> dict[str, str]:
    return {
        "config": "ok" if not _has_faults(house) else "error",
        "state_db": await _journal(house),
        "store": await _store(house),
        "disk": await asyncio.to_thread(_disk, house),
    }


def _has_faults(house: ServerContext) -> bool:
    return any(finding.level == "error" for finding in house.app.config.diagnostics)


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
        return "ok" if shutil.disk_usage(house.app.home.root).free > LEAST_FREE else "low"
    except OSError:
        return "error"
