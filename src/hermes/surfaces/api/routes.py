"""The route table, and the OpenAPI document built from it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, Value
from hermes.surfaces.api import chat, discovery, jobs, responses, runs, sessions
from hermes.surfaces.api.bodies import (
    AnswerBody,
    ApprovalBody,
    ChatBody,
    EmptyBody,
    ForkBody,
    JobBody,
    JobPatch,
    PauseBody,
    ResponsesBody,
    RunBody,
    SessionBody,
    SessionChatBody,
    SessionPatch,
    SteerBody,
)
from hermes.surfaces.api.http import ApiRequest, ApiResponse
from hermes.surfaces.api.server_context import ServerContext
from hermes.surfaces.api.tokens import TokenScope
from hermes.version import __version__

Handler = Callable[[ServerContext, ApiRequest], Awaitable[ApiResponse | None]]


class Route(NamedTuple):
    """An endpoint of the API."""

    method: str
    path: str
    handler: Handler
    summary: str
    # The type of the request body; None for no body.
    body: type[Value] | None = None
    status: int = 200
    # What the token must allow; None needs no token.
    scope: TokenScope | None = "chat"
    # Whether the route answers with server-sent events, always or on request.
    streams: bool = False


async def openapi(server: ServerContext, request: ApiRequest) -> ApiResponse:
    return ApiResponse(status=200, body=_openapi_document())


ROUTES: tuple[Route, ...] = (
    Route("GET", "/health", discovery.health, "Liveness.", scope=None),
    Route("GET", "/v1/health", discovery.health, "Liveness.", scope=None),
    Route("GET", "/health/ready", discovery.ready, "Readiness.", scope=None),
    Route("GET", "/health/detailed", discovery.detailed, "Health details.", scope="metrics"),
    Route("GET", "/metrics", discovery.metrics, "Prometheus metrics.", scope="metrics"),
    Route("GET", "/v1/openapi.json", openapi, "This OpenAPI document."),
    Route("GET", "/v1/models", discovery.list_models, "Model names."),
    Route("GET", "/v1/models/{id}", discovery.show_model, "One model."),
    Route("GET", "/v1/capabilities", discovery.capabilities, "Capabilities and limits."),
    Route("GET", "/v1/toolsets", discovery.toolsets, "Available toolsets."),
    Route("GET", "/v1/skills", discovery.skills, "Available skills."),
    Route(
        "POST",
        "/v1/chat/completions",
        chat.complete,
        "One turn, as a chat completion.",
        ChatBody,
        streams=True,
    ),
    Route(
        "POST",
        "/v1/responses",
        responses.create_response,
        "One turn, as a response that can be continued.",
        ResponsesBody,
        streams=True,
    ),
    Route("GET", "/v1/responses/{id}", responses.show_response, "A stored response."),
    Route("DELETE", "/v1/responses/{id}", responses.delete_response, "Delete a response."),
    Route("POST", "/v1/runs", runs.create_run, "Start a run.", RunBody, 202),
    Route("GET", "/v1/runs/{id}", runs.show_run, "Status of a run."),
    Route(
        "GET",
        "/v1/runs/{id}/events",
        runs.run_events,
        "Events of a run; resumes after `Last-Event-ID`.",
        streams=True,
    ),
    Route("POST", "/v1/runs/{id}/stop", runs.stop_run, "Stop a run.", EmptyBody, 202),
    Route(
        "POST",
        "/v1/runs/{id}/approval",
        runs.approve_run,
        "Answer an approval request.",
        ApprovalBody,
        scope="approve",
    ),
    Route("POST", "/v1/runs/{id}/answer", runs.answer_run, "Answer a question.", AnswerBody),
    Route("POST", "/v1/runs/{id}/steer", runs.steer_run, "Steer a run.", SteerBody, 202),
    Route("GET", "/api/sessions", sessions.list_sessions, "Sessions, newest first."),
    Route("POST", "/api/sessions", sessions.create_session, "Create a session.", SessionBody, 201),
    Route("GET", "/api/sessions/{id}", sessions.show_session, "One session."),
    Route(
        "PATCH",
        "/api/sessions/{id}",
        sessions.change_session,
        "Rename or archive a session.",
        SessionPatch,
    ),
    Route("DELETE", "/api/sessions/{id}", sessions.delete_session, "Delete a session."),
    Route(
        "GET", "/api/sessions/{id}/messages", sessions.session_messages, "Messages of a session."
    ),
    Route(
        "POST", "/api/sessions/{id}/fork", sessions.fork_session, "Fork a session.", ForkBody, 201
    ),
    Route(
        "POST",
        "/api/sessions/{id}/chat",
        sessions.session_chat,
        "One turn in a session.",
        SessionChatBody,
    ),
    Route(
        "POST",
        "/api/sessions/{id}/chat/stream",
        sessions.session_chat_stream,
        "One turn in a session, as events.",
        SessionChatBody,
        streams=True,
    ),
    Route("GET", "/api/jobs", jobs.list_jobs, "Scheduled jobs.", scope="jobs"),
    Route("POST", "/api/jobs", jobs.add_job, "Schedule a job.", JobBody, 201, scope="jobs"),
    Route("GET", "/api/jobs/{id}", jobs.get_job, "One job.", scope="jobs"),
    Route("PATCH", "/api/jobs/{id}", jobs.change_job, "Change a job.", JobPatch, scope="jobs"),
    Route("DELETE", "/api/jobs/{id}", jobs.remove_job, "Delete a job.", scope="jobs"),
    Route("POST", "/api/jobs/{id}/pause", jobs.pause_job, "Pause a job.", PauseBody, scope="jobs"),
    Route(
        "POST", "/api/jobs/{id}/resume", jobs.resume_job, "Resume a job.", EmptyBody, scope="jobs"
    ),
    Route(
        "POST",
        "/api/jobs/{id}/run",
        jobs.run_job,
        "Make a job due now.",
        EmptyBody,
        202,
        scope="jobs",
    ),
    Route("GET", "/api/jobs/{id}/runs", jobs.job_runs, "Runs of a job.", scope="jobs"),
)


class RouteTable:
    """Finds the route of a request: fixed paths by lookup, others by pattern."""

    def __init__(self) -> None:
        self._fixed: dict[str, dict[str, Route]] = {}
        self._open: list[tuple[re.Pattern[str], dict[str, Route]]] = []
        by_path: dict[str, dict[str, Route]] = {}
        for route in ROUTES:
            by_path.setdefault(route.path, {})[route.method] = route
        for path, methods in by_path.items():
            if "{" in path:
                pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]{1,256})", path)
                self._open.append((re.compile(pattern), methods))
            else:
                self._fixed[path] = methods

    def find(self, path: str) -> tuple[dict[str, Route], dict[str, str]]:
        """The routes of a path by method (empty for an unknown path), and the path parameters."""
        if (methods := self._fixed.get(path)) is not None:
            return methods, {}
        for pattern, methods in self._open:
            if (match := pattern.fullmatch(path)) is not None:
                return methods, match.groupdict()
        return {}, {}


JSON_TYPE = "application/json"
EVENTS_TYPE = "text/event-stream"
REF = "#/components/schemas/{name}"
ERROR: JsonObject = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": "string"},
            },
        }
    },
}
TEXT_PATHS = ("/metrics",)


@cache
def _openapi_document() -> bytes:
    return encode(document(ROUTES))


def document(routes: Sequence[Route]) -> JsonObject:
    bodies = [route.body for route in routes if route.body is not None]
    kinds = list(dict.fromkeys(bodies))
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REF)
    by_kind = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_kind)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hermes", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {**components, "Error": ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route, schemas: dict[Any, JsonObject]) -> JsonObject:
    name = f"{route.handler.__name__}_{re.sub(r'[^a-z0-9]+', '_', route.path).strip('_')}"
    content: JsonObject = {JSON_TYPE: {"schema": {"type": "object"}}}
    if route.path in TEXT_PATHS:
        content = {"text/plain": {"schema": {"type": "string"}}}
    elif route.streams:
        content[EVENTS_TYPE] = {"schema": {"type": "string"}}
    operation: JsonObject = {
        "operationId": name,
        "summary": route.summary,
        "security": [{"token": []}] if route.scope else [],
        "responses": {
            str(route.status): {"description": "Success.", "content": content},
            "default": {
                "description": "Error; the body gives the reason.",
                "content": {JSON_TYPE: {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    names = re.findall(r"\{(\w+)\}", route.path)
    if names:
        operation["parameters"] = [
            {"name": each, "in": "path", "required": True, "schema": {"type": "string"}}
            for each in names
        ]
    if route.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {JSON_TYPE: {"schema": schemas[route.body]}},
        }
    return operation
