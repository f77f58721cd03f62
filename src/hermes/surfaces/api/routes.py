"""All routes as data: what is asked, what for, who may, with which body, and who answers."""

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
    """`scope` None is for everybody, `body` None for requests without one. `streams` are routes
    that answer with server-sent events, always or on request."""

    method: str
    path: str
    handler: Handler
    scope: Scope | None
    words: str
    body: type[Value] | None = None
    status: int = 200
    streams: bool = False


ROUTES: tuple[Route, ...] = (
    Route("GET", "/health", health.health, None, "The server lives."),
    Route("GET", "/v1/health", health.health, None, "The server lives."),
    Route("GET", "/health/ready", health.ready, None, "Turns are taken."),
    Route("GET", "/health/detailed", health.detailed, "metrics", "How the server is doing."),
    Route("GET", "/metrics", health.metrics, "metrics", "Numbers for Prometheus."),
    Route("GET", "/v1/openapi.json", discovery.openapi, "chat", "This description."),
    Route("GET", "/v1/models", discovery.list_models, "chat", "Names to ask for."),
    Route("GET", "/v1/models/{id}", discovery.show_model, "chat", "One of the names."),
    Route("GET", "/v1/capabilities", discovery.capabilities, "chat", "Abilities and limits."),
    Route("GET", "/v1/toolsets", discovery.toolsets, "chat", "Tools that the agent has."),
    Route("GET", "/v1/skills", discovery.skills, "chat", "Skills that the agent has."),
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
        "One turn, as a response that can be gone on from.",
        ResponseBody,
        streams=True,
    ),
    Route("GET", "/v1/responses/{id}", responses.show_response, "chat", "A kept response."),
    Route("DELETE", "/v1/responses/{id}", responses.delete_response, "chat", "Forget a response."),
    Route("POST", "/v1/runs", runs.create_run, "chat", "A turn to be watched.", RunBody, 202),
    Route("GET", "/v1/runs/{id}", runs.show_run, "chat", "How a run is doing."),
    Route(
        "GET",
        "/v1/runs/{id}/events",
        runs.run_events,
        "chat",
        "What happens in a run, from any place on (`Last-Event-ID`).",
        streams=True,
    ),
    Route("POST", "/v1/runs/{id}/stop", runs.stop_run, "chat", "End a run.", Nothing, 202),
    Route(
        "POST",
        "/v1/runs/{id}/approval",
        runs.approve_run,
        "approve",
        "Allow or deny what a run asks for.",
        ApprovalBody,
    ),
    Route(
        "POST", "/v1/runs/{id}/answer", runs.answer_run, "chat", "Answer a question.", AnswerBody
    ),
    Route("POST", "/v1/runs/{id}/steer", runs.steer_run, "chat", "A word to it.", SteerBody, 202),
    Route("GET", "/api/sessions", sessions.list_sessions, "chat", "Sessions, newest first."),
    Route("POST", "/api/sessions", sessions.create_session, "chat", "A new id.", SessionBody, 201),
    Route("GET", "/api/sessions/{id}", sessions.show_session, "chat", "One session."),
    Route("PATCH", "/api/sessions/{id}", sessions.change_session, "chat", "Name it.", SessionPatch),
    Route("DELETE", "/api/sessions/{id}", sessions.delete_session, "chat", "Remove it."),
    Route(
        "GET", "/api/sessions/{id}/messages", sessions.session_messages, "chat", "What was said."
    ),
    Route(
        "POST",
        "/api/sessions/{id}/fork",
        sessions.fork_session,
        "chat",
        "Branch off from it.",
        ForkBody,
        201,
    ),
    Route(
        "POST",
        "/api/sessions/{id}/chat",
        sessions.session_chat,
        "chat",
        "One turn in it.",
        SessionChatBody,
    ),
    Route(
        "POST",
        "/api/sessions/{id}/chat/stream",
        sessions.session_chat_stream,
        "chat",
        "One turn in it, as events.",
        SessionChatBody,
        streams=True,
    ),
    Route("GET", "/api/jobs", jobs.list_jobs, "jobs", "Scheduled jobs."),
    Route("POST", "/api/jobs", jobs.add_job, "jobs", "Schedule a job.", JobBody, 201),
    Route("GET", "/api/jobs/{id}", jobs.get_job, "jobs", "One job."),
    Route("PATCH", "/api/jobs/{id}", jobs.change_job, "jobs", "Change a job.", JobPatch),
    Route("DELETE", "/api/jobs/{id}", jobs.remove_job, "jobs", "Remove a job."),
    Route("POST", "/api/jobs/{id}/pause", jobs.pause_job, "jobs", "Let it rest.", PauseBody),
    Route("POST", "/api/jobs/{id}/resume", jobs.resume_job, "jobs", "Go on with it.", Nothing),
    Route("POST", "/api/jobs/{id}/run", jobs.run_job, "jobs", "Make it due now.", Nothing, 202),
    Route("GET", "/api/jobs/{id}/runs", jobs.job_runs, "jobs", "When it ran."),
)


class Table:
    """Finds the route of a request. Paths without variable parts are looked up, others matched."""

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
        """The routes of a path by method, none for an unknown path; the variable parts."""
        if (methods := self._fixed.get(path)) is not None:
            return methods, {}
        for pattern, methods in self._open:
            if (match := pattern.fullmatch(path)) is not None:
                return methods, match.groupdict()
        return {}, {}
