"""The ASGI application: checks, routes, answers and counts every request."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

from hermes.core.errors import HermesError
from hermes.surfaces.api.guard import PREFLIGHT, RequestGuard, check_framing
from hermes.surfaces.api.http import (
    ApiRequest,
    ApiResponse,
    Headers,
    HttpError,
    Receive,
    Scope,
    Send,
    crash_error,
    http_error,
)
from hermes.surfaces.api.routes import Route, RouteTable
from hermes.surfaces.api.server_context import ServerContext

log = logging.getLogger(__name__)

SAFE_HEADERS: Headers = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


class ApiServer:
    """The ASGI application. It checks host and origin of a request before it reads anything else,
    and the token before it does anything."""

    def __init__(self, server: ServerContext, guard: RequestGuard) -> None:
        self._server = server
        self._guard = guard
        self._table = RouteTable()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        sender = _ResponseSender(
            send, f"req_{self._server.app.context.world.chance.getrandbits(64):016x}"
        )
        request = ApiRequest(scope, receive, sender.send)
        try:
            response = await self._answer(request, sender)
            if response is not None:
                await request.respond(response)
        except HttpError as error:
            await self._refuse(request, sender, error)
        except HermesError as error:
            await self._refuse(request, sender, http_error(error))
        except Exception as error:
            log.exception("a request crashed", extra={"route": request.route})
            await self._refuse(request, sender, crash_error(error))
        finally:
            if sender.status:
                key = (request.method, request.route or "-", sender.status)
                self._server.metrics.requests[key] += 1

    async def _answer(self, request: ApiRequest, sender: _ResponseSender) -> ApiResponse | None:
        check_framing(request.headers)
        self._guard.check_host(request.headers)
        sender.more = self._guard.cors(request.headers)
        if request.method == "OPTIONS" and sender.more:
            return ApiResponse(status=204, body=b"", headers=PREFLIGHT)
        methods, names = self._table.find(request.path)
        route = _route(methods, request.method)
        request.route, request.path_params = route.path, names
        request.client = self._guard.authenticate(request.headers, route.scope, request.address)
        if key := request.session_key:
            sender.more += ((b"x-hermes-session-key", key.encode("latin-1")),)
        if route.body is not None:
            await request.read_body(route.body)
        return await route.handler(self._server, request)

    async def _refuse(self, request: ApiRequest, sender: _ResponseSender, error: HttpError) -> None:
        if sender.status:
            # The response has started; it can only be ended.
            await sender.send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        headers = ((b"content-type", b"application/json"), *error.headers)
        # Errors may quote responses of other servers.
        message = self._server.app.context.redactor.redact_known(str(error))
        body = HttpError(error.status, error.code, message, param=error.param).body
        await request.respond(ApiResponse(status=error.status, body=body, headers=headers))


class _ResponseSender:
    """Adds the headers that every response has."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._id = request_id
        self.more: Headers = ()
        self.status = 0

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message["headers"])
            names = {name for name, _ in headers}
            headers += [pair for pair in SAFE_HEADERS if pair[0] not in names]
            headers += [(b"x-request-id", self._id.encode()), *self.more]
            message["headers"] = headers
        await self._send(message)


def _route(methods: dict[str, Route], method: str) -> Route:
    if not methods:
        raise HttpError(404, "unknown_path", "Unknown path.")
    found = methods.get("GET" if method == "HEAD" else method)
    if found is None or (method == "HEAD" and found.streams):
        allowed = ", ".join(sorted(methods)).encode()
        message = "This path does not support that method."
        raise HttpError(405, "method_not_allowed", message, headers=((b"allow", allowed),))
    return found
