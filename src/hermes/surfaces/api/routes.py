"""The route table, and the OpenAPI document built from it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from hermes.codec.values import JsonObject, Value
from hermes.surfaces.api import chat, discovery, jobs, responses, runs, sessions
from hermes.surfaces.api import discovery as health
from hermes.surfaces.api.bodies import (
    AnswerBody,
    ApprovalBody,
    ChatBody,
    EmptyBody,
    ForkBody,
    JobBody,
    JobPatch,
    PauseBody,
    ResponseBody,
    RunBody,
    SessionBody,
    SessionChatBody,
    SessionPatch,
    SteerBody,
)
from hermes.surfaces.api.http import HttpRequest, HttpResponse
from hermes.surfaces.api.server_context import ServerContext
from hermes.surfaces.api.tokens import TokenScope
from hermes.version import __version__

Handler = Callable[[ServerContext, HttpRequest], Awaitable[HttpResponse | None]]


class ApiRoute(NamedTuple):
    """`scope` None needs no token; `body` None means no request body. `streams` marks routes that
    answer with server-sent events, always or on request."""

    method: str
    path: str
    handler: Handler
    scope: TokenScope | None
    words: str
    body: type[Value] | None = None
    status: int = 200
    streams: bool = False


ROUTES: tuple[ApiRoute, ...] = (
    ApiRoute("GET", "/health", health.health, None, "Liveness."),
    ApiRoute("GET", "/v1/health", health.health, None, "Liveness."),
    ApiRoute("GET", "/health/ready", health.ready, None, "Readiness."),
    ApiRoute("GET", "/health/detailed", health.detailed, "metrics", "Health details."),
    ApiRoute("GET", "/metrics", health.metrics, "metrics", "Prometheus metrics."),
    ApiRoute("GET", "/v1/openapi.json", discovery.openapi, "chat", "This OpenAPI document."),
    ApiRoute("GET", "/v1/models", discovery.list_models, "chat", "Model names."),
    ApiRoute("GET", "/v1/models/{id}", discovery.show_model, "chat", "One model."),
    ApiRoute("GET", "/v1/capabilities", discovery.capabilities, "chat", "Capabilities and limits."),
    ApiRoute("GET", "/v1/toolsets", discovery.toolsets, "chat", "Available toolsets."),
    ApiRoute("GET", "/v1/skills", discovery.skills, "chat", "Available skills."),
    ApiRoute(
        "POST",
        "/v1/chat/completions",
        chat.complete,
        "chat",
        "One turn, as a chat completion.",
        ChatBody,
        streams=True,
    ),
    ApiRoute(
        "POST",
        "/v1/responses",
        responses.create_response,
        "chat",
        "One turn, as a response that can be continued.",
        ResponseBody,
        streams=True,
    ),
    ApiRoute("GET", "/v1/responses/{id}", responses.show_response, "chat", "A stored response."),
    ApiRoute(
        "DELETE", "/v1/responses/{id}", responses.delete_response, "chat", "Delete a response."
    ),
    ApiRoute("POST", "/v1/runs", runs.create_run, "chat", "Start a run.", RunBody, 202),
    ApiRoute("GET", "/v1/runs/{id}", runs.show_run, "chat", "Status of a run."),
    ApiRoute(
        "GET",
        "/v1/runs/{id}/events",
        runs.run_events,
        "chat",
        "Events of a run; resumes after `Last-Event-ID`.",
        streams=True,
    ),
    ApiRoute("POST", "/v1/runs/{id}/stop", runs.stop_run, "chat", "Stop a run.", EmptyBody, 202),
    ApiRoute(
        "POST",
        "/v1/runs/{id}/approval",
        runs.approve_run,
        "approve",
        "Answer an approval request.",
        ApprovalBody,
    ),
    ApiRoute(
        "POST", "/v1/runs/{id}/answer", runs.answer_run, "chat", "Answer a question.", AnswerBody
    ),
    ApiRoute("POST", "/v1/runs/{id}/steer", runs.steer_run, "chat", "Steer a run.", SteerBody, 202),
    ApiRoute("GET", "/api/sessions", sessions.list_sessions, "chat", "Sessions, newest first."),
    ApiRoute(
        "POST",
        "/api/sessions",
        sessions.create_session,
        "chat",
        "Create a session.",
        SessionBody,
        201,
    ),
    ApiRoute("GET", "/api/sessions/{id}", sessions.show_session, "chat", "One session."),
    ApiRoute(
        "PATCH",
        "/api/sessions/{id}",
        sessions.change_session,
        "chat",
        "Rename or archive a session.",
        SessionPatch,
    ),
    ApiRoute("DELETE", "/api/sessions/{id}", sessions.delete_session, "chat", "Delete a session."),
    ApiRoute(
        "GET",
        "/api/sessions/{id}/messages",
        sessions.session_messages,
        "chat",
        "Messages of a session.",
    ),
    ApiRoute(
        "POST",
        "/api/sessions/{id}/fork",
        sessions.fork_session,
        "chat",
        "Fork a session.",
        ForkBody,
        201,
    ),
    ApiRoute(
        "POST",
        "/api/sessions/{id}/chat",
        sessions.session_chat,
        "chat",
        "One turn in a session.",
        SessionChatBody,
    ),
    ApiRoute(
        "POST",
        "/api/sessions/{id}/chat/stream",
        sessions.session_chat_stream,
        "chat",
        "One turn in a session, as events.",
        SessionChatBody,
        streams=True,
    ),
    ApiRoute("GET", "/api/jobs", jobs.list_jobs, "jobs", "Scheduled jobs."),
    ApiRoute("POST", "/api/jobs", jobs.add_job, "jobs", "Schedule a job.", JobBody, 201),
    ApiRoute("GET", "/api/jobs/{id}", jobs.get_job, "jobs", "One job."),
    ApiRoute("PATCH", "/api/jobs/{id}", jobs.change_job, "jobs", "Change a job.", JobPatch),
    ApiRoute("DELETE", "/api/jobs/{id}", jobs.remove_job, "jobs", "Delete a job."),
    ApiRoute("POST", "/api/jobs/{id}/pause", jobs.pause_job, "jobs", "Pause a job.", PauseBody),
    ApiRoute("POST", "/api/jobs/{id}/resume", jobs.resume_job, "jobs", "Resume a job.", EmptyBody),
    ApiRoute(
        "POST", "/api/jobs/{id}/run", jobs.run_job, "jobs", "Make a job due now.", EmptyBody, 202
    ),
    ApiRoute("GET", "/api/jobs/{id}/runs", jobs.job_runs, "jobs", "Runs of a job."),
)


class RouteTable:
    """Finds the route of a request: fixed paths by lookup, others by pattern."""

    def __init__(self, routes: tuple[ApiRoute, ...] = ROUTES) -> None:
        self._fixed: dict[str, dict[str, ApiRoute]] = {}
        self._open: list[tuple[re.Pattern[str], dict[str, ApiRoute]]] = []
        by_path: dict[str, dict[str, ApiRoute]] = {}
        for route in routes:
            by_path.setdefault(route.path, {})[route.method] = route
        for path, methods in by_path.items():
            if "{" in path:
                pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]{1,256})", path)
                self._open.append((re.compile(pattern), methods))
            else:
                self._fixed[path] = methods

    def find(self, path: str) -> tuple[dict[str, ApiRoute], dict[str, str]]:
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


def document(routes: Sequence[ApiRoute]) -> JsonObject:
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


def _operation(route: ApiRoute, schemas: dict[Any, JsonObject]) -> JsonObject:
    name = f"{route.handler.__name__}_{re.sub(r'[^a-z0-9]+', '_', route.path).strip('_')}"
    told: JsonObject = {
        "operationId": name,
        "summary": route.words,
        "security": [{"token": []}] if route.scope else [],
        "responses": {
            str(route.status): {"description": "Success.", "content": _content(route)},
            "default": {
                "description": "Error; the body gives the reason.",
                "content": {JSON_TYPE: {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    names = re.findall(r"\{(\w+)\}", route.path)
    if names:
        told["parameters"] = [
            {"name": each, "in": "path", "required": True, "schema": {"type": "string"}}
            for each in names
        ]
    if route.body is not None:
        told["requestBody"] = {
            "required": True,
            "content": {JSON_TYPE: {"schema": schemas[route.body]}},
        }
    return told


def _content(route: ApiRoute) -> JsonObject:
    if route.path in TEXT_PATHS:
        return {"text/plain": {"schema": {"type": "string"}}}
    told: JsonObject = {JSON_TYPE: {"schema": {"type": "object"}}}
    if route.streams:
        told[EVENTS_TYPE] = {"schema": {"type": "string"}}
    return told
