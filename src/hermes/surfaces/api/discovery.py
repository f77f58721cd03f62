"""Serves models, capabilities, limits, toolsets, skills and the OpenAPI document."""

from __future__ import annotations

import asyncio

from hermes.app.build import App
from hermes.codec.values import JsonObject
from hermes.homes.toolsets import states
from hermes.surfaces.api.call import MOST_BODY, Answer, Call, answer
from hermes.surfaces.api.content import MOST_CHARS, MOST_PARTS
from hermes.surfaces.api.house import House
from hermes.surfaces.api.refusals import Refusal
from hermes.tools.toolbox import wanted_names
from hermes.version import __version__


async def list_models(house: House, call: Call) -> Answer:
    names = dict.fromkeys((house.model_name, *house.app.settings.model_aliases))
    return answer({"object": "list", "data": [_model(house, name) for name in names]})


async def show_model(house: House, call: Call) -> Answer:
    name = call.names["id"]
    if name != house.model_name and name not in house.app.settings.model_aliases:
        raise Refusal(404, "model_not_found", "There is no such model.", param="model")
    return answer(_model(house, name))


async def capabilities(house: House, call: Call) -> Answer:
    settings = house.settings
    return answer(
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
                "max_body_bytes": MOST_BODY,
                "max_text_chars": MOST_CHARS,
                "max_content_parts": MOST_PARTS,
                "max_concurrent_runs": settings.max_concurrent_runs,
                "stored_responses": settings.stored_responses,
            },
        }
    )


async def openapi(house: House, call: Call) -> Answer:
    return Answer(status=200, body=house.document())


async def toolsets(house: House, call: Call) -> Answer:
    """The toolsets a run may choose, and the default tools of a session."""
    settings = house.app.settings
    names = house.app.tools.known(wanted_names(settings, platform="api"))
    told = [
        {"name": each.name, "tools": [tool for tool in each.tools if tool in names]}
        for each in states(settings, "api")
        if each.enabled or each.partly
    ]
    enabled = settings.platform_toolsets.get("api", settings.toolsets)
    return answer({"object": "list", "data": told, "enabled": list(enabled), "tools": list(names)})


async def skills(house: House, call: Call) -> Answer:
    """The skills that the agent can use here."""
    return answer({"object": "list", "data": await asyncio.to_thread(_skills, house.app)})


def _skills(app: App) -> list[JsonObject]:
    return [
        {
            "name": entry.name,
            "description": entry.skill.description,
            "category": entry.category,
            "source": entry.kind,
        }
        for entry in app.skills(app.settings.terminal.cwd).listed("api")
    ]


def _model(house: House, name: str) -> dict[str, object]:
    return {
        "id": name,
        "object": "model",
        "created": int(house.tally.started_at),
        "owned_by": "hermes",
        "permission": [],
        "root": name,
        "parent": None,
    }
