"""Serves models, capabilities, limits, toolsets, skills and the OpenAPI document."""

from __future__ import annotations

import asyncio

from hermes.app.build import App
from hermes.codec.values import JsonObject
from hermes.homes.toolsets import toolset_states
from hermes.surfaces.api.call import MAX_BODY_BYTES, HttpRequest, HttpResponse, json_response
from hermes.surfaces.api.content import MAX_PARTS, MAX_TEXT_CHARS
from hermes.surfaces.api.house import ServerContext
from hermes.surfaces.api.refusals import HttpError
from hermes.tools.toolbox import wanted_names
from hermes.version import __version__


async def list_models(house: ServerContext, call: HttpRequest) -> HttpResponse:
    names = dict.fromkeys((house.model_name, *house.app.settings.model_aliases))
    return json_response({"object": "list", "data": [_model(house, name) for name in names]})


async def show_model(house: ServerContext, call: HttpRequest) -> HttpResponse:
    name = call.path_params["id"]
    if name != house.model_name and name not in house.app.settings.model_aliases:
        raise HttpError(404, "model_not_found", "There is no such model.", param="model")
    return json_response(_model(house, name))


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
                "stored_responses": settings.stored_responses,
            },
        }
    )


async def openapi(house: ServerContext, call: HttpRequest) -> HttpResponse:
    return HttpResponse(status=200, body=house.document())


async def toolsets(house: ServerContext, call: HttpRequest) -> HttpResponse:
    """The toolsets a run may choose, and the default tools of a session."""
    settings = house.app.settings
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
        for entry in app.skills(app.settings.terminal.cwd).list_usable("api")
    ]


def _model(house: ServerContext, name: str) -> dict[str, object]:
    return {
        "id": name,
        "object": "model",
        "created": int(house.metrics.started_at),
        "owned_by": "hermes",
        "permission": [],
        "root": name,
        "parent": None,
    }
