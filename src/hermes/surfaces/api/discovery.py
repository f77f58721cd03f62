"""What the server offers: models, abilities, limits, toolsets and the description of all routes."""

from __future__ import annotations

from hermes.app.toolbox import wanted_names
from hermes.surfaces.api.call import MOST_BODY, Answer, Call, answer
from hermes.surfaces.api.content import MOST_CHARS, MOST_PARTS
from hermes.surfaces.api.house import House
from hermes.surfaces.api.refusals import Refusal
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
                "jobs": house.jobs is not None,
                "sessions": True,
                "tool_progress_events": True,
                "reasoning_streaming": settings.show_reasoning,
                "idempotency": True,
                "session_id_header": "X-Hermes-Session-Id",
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
    settings = house.app.settings
    return answer({"toolsets": list(settings.toolsets), "tools": list(wanted_names(settings))})


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
