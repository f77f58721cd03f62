"""The route table: method, path, scope, body type and handler of each route."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from hermes.codec.values import Value
from hermes.surfaces.api import chat, discovery, health, jobs, responses, runs, sessions
from hermes.surfaces.api.bodies import (
    AnswerBody,
    ApprovalBody,
    ChatBody,
    ForkBody,
    JobBody,
    JobPatch,
    Nothing,
    PauseBody,
    ResponseBody,
    RunBody,
    SessionBody,
    SessionChatBody,
    SessionPatch,
    SteerBody,
)
from hermes.surfaces.api.call import Answer, Call
from hermes.surfaces.api.house import House
from hermes.surfaces.api.tokens import Scope

Handler = Callable[[House, Call], Awaitable[Answer | None]]


class Route(NamedTuple):
    """`scope` None needs no token; `body` None means no request body. `streams` marks routes that
    answer with server-sent events, always or on request."""

    method: str
    path: str
    handler: Handler
    scope: Scope | None
    words: str
    body: type[Value] | None = None
    status: int = 200
    streams: bool = False


ROUTES: tuple[Route, ...] = (
    Route("GET", "/health", health.health, None, "Liveness."),
    Route("GET", "/v1/health", health.health, None, "Liveness."),
    Route("GET", "/health/ready", health.ready, None, "Readiness."),
    Route("GET", "/health/detailed", health.detailed, "metrics", "Health details."),
    Route("GET", "/metrics", health.metrics, "metrics", "Prometheus metrics."),
    Route("GET", "/v1/openapi.json", discovery.openapi, "chat", "This OpenAPI document."),
    Route("GET", "/v1/models", discovery.list_models, "chat", "Model names."),
    Route("GET", "/v1/models/{id}", discovery.show_model, "chat", "One model."),
    Route("GET", "/v1/capabilities", discovery.capabilities, "chat", "Capabilities and limits."),
    Route("GET", "/v1/toolsets", discovery.toolsets, "chat", "Available toolsets."),
    Route("GET", "/v1/skills", discovery.skills, "chat", "Available skills."),
    Route(
        "POST",
        "/v1/chat/completions",
        chat.complete,
        "chat",
        "One turn, as a chat completion.",
        ChatBody,
        streams=True,
    ),
    Route(
        "POST",
        "/v1/responses",
        responses.create_response,
        "chat",
        "One turn, as a response that can be continued.",
        ResponseBody,
        streams=True,
    ),
    Route("GET", "/v1/responses/{id}", responses.show_response, "chat", "A stored response."),
    Route("DELETE", "/v1/responses/{id}", responses.delete_response, "chat", "Delete a response."),
    Route("POST", "/v1/runs", runs.create_run, "chat", "Start a run.", RunBody, 202),
    Route("GET", "/v1/runs/{id}", runs.show_run, "chat", "Status of a run."),
    Route(
        "GET",
        "/v1/runs/{id}/events",
        runs.run_events,
        "chat",
        "Events of a run; resumes after `Last-Event-ID`.",
        streams=True,
    ),
    Route("POST", "/v1/runs/{id}/stop", runs.stop_run, "chat", "Stop a run.", Nothing, 202),
    Route(
        "POST",
        "/v1/runs/{id}/approval",
        runs.approve_run,
        "approve",
        "Answer an approval request.",
        ApprovalBody,
    ),
    Route(
        "POST", "/v1/runs/{id}/answer", runs.answer_run, "chat", "Answer a question.", AnswerBody
    ),
    Route("POST", "/v1/runs/{id}/steer", runs.steer_run, "chat", "Steer a run.", SteerBody, 202),
    Route("GET", "/api/sessions", sessions.list_sessions, "chat", "Sessions, newest first."),
    Route(
        "POST",
        "/api/sessions",
        sessions.create_session,
        "chat",
        "Create a session.",
        SessionBody,
        201,
    ),
    Route("GET", "/api/sessions/{id}", sessions.show_session, "chat", "One session."),
    Route(
        "PATCH",
        "/api/sessions/{id}",
        sessions.change_session,
        "chat",
        "Rename or archive a session.",
        SessionPatch,
    ),
    Route("DELETE", "/api/sessions/{id}", sessions.delete_session, "chat", "Delete a session."),
    Route(
        "GET",
        "/api/sessions/{id}/messages",
        sessions.session_messages,
        "chat",
        "Messages of a session.",
    ),
    Route(
        "POST",
        "/api/sessions/{id}/fork",
        sessions.fork_session,
        "chat",
        "Fork a session.",
        ForkBody,
        201,
    ),
    Route(
        "POST",
        "/api/sessions/{id}/chat",
        sessions.session_chat,
        "chat",
        "One turn in a session.",
        SessionChatBody,
    ),
    Route(
        "POST",
        "/api/sessions/{id}/chat/stream",
        sessions.session_chat_stream,
        "chat",
        "One turn in a session, as events.",
        SessionChatBody,
        streams=True,
    ),
    Route("GET", "/api/jobs", jobs.list_jobs, "jobs", "Scheduled jobs."),
    Route("POST", "/api/jobs", jobs.add_job, "jobs", "Schedule a job.", JobBody, 201),
    Route("GET", "/api/jobs/{id}", jobs.get_job, "jobs", "One job."),
    Route("PATCH", "/api/jobs/{id}", jobs.change_job, "jobs", "Change a job.", JobPatch),
    Route("DELETE", "/api/jobs/{id}", jobs.remove_job, "jobs", "Delete a job."),
    Route("POST", "/api/jobs/{id}/pause", jobs.pause_job, "jobs", "Pause a job.", PauseBody),
    Route("POST", "/api/jobs/{id}/resume", jobs.resume_job, "jobs", "Resume a job.", Nothing),
    Route("POST", "/api/jobs/{id}/run", jobs.run_job, "jobs", "Make a job due now.", Nothing, 202),
    Route("GET", "/api/jobs/{id}/runs", jobs.job_runs, "jobs", "Runs of a job."),
)


class Table:
    """Finds the route of a request: fixed paths by lookup, others by pattern."""

    def __init__(self, routes: tuple[Route, ...] = ROUTES) -> None:
        self._fixed: dict[str, dict[str, Route]] = {}
        self._open: list[tuple[re.Pattern[str], dict[str, Route]]] = []
        by_path: dict[str, dict[str, Route]] = {}
        for route in routes:
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
