"""The ASGI application: checks, routes, answers and counts every request."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

from hermes.core.errors import HermesError
from hermes.surfaces.api.http import (
    NO_RETRY,
    PREFLIGHT,
    ApiRequest,
    ApiResponse,
    Headers,
    HttpError,
    Receive,
    RequestGuard,
    Scope,
    Send,
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
    """Checks host and origin before it reads anything of a request, and the token before it does
    anything."""

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
        call = ApiRequest(scope, receive, sender.send)
        try:
            response = await self._answer(call, sender)
            if response is not None:
                await call.respond(response)
        except HttpError as error:
            await self._refuse(call, sender, error)
        except HermesError as error:
            await self._refuse(call, sender, http_error(error))
        except Exception:
            log.exception("a request crashed", extra={"route": call.route})
            words = "Internal error; see the server log."
            await self._refuse(call, sender, HttpError(500, "internal", words, headers=NO_RETRY))
        finally:
            if sender.status:
                key = (call.method, call.route or "-", sender.status)
                self._server.metrics.requests[key] += 1

    async def _answer(self, call: ApiRequest, sender: _ResponseSender) -> ApiResponse | None:
        self._guard.check_host(call.headers)
        sender.more = self._guard.cors(call.headers)
        if call.method == "OPTIONS" and sender.more:
            return ApiResponse(status=204, body=b"", headers=PREFLIGHT)
        methods, names = self._table.find(call.path)
        route = _route(methods, call.method)
        call.route, call.path_params = route.path, names
        call.client = self._guard.authenticate(call.headers, route.scope)
        if key := call.session_key:
            sender.more += ((b"x-hermes-session-key", key.encode("latin-1")),)
        if route.body is not None:
            await call.read_body(route.body)
        return await route.handler(self._server, call)

    async def _refuse(self, call: ApiRequest, sender: _ResponseSender, error: HttpError) -> None:
        if sender.status:
            # The response has started; it can only be ended.
            await sender.send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        headers = ((b"content-type", b"application/json"), *error.headers)
        # Errors may quote responses of other servers.
        words = self._server.app.context.redactor.redact_known(str(error))
        body = HttpError(error.status, error.code, words, param=error.param).body
        await call.respond(ApiResponse(status=error.status, body=body, headers=headers))


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
            given = list(message["headers"])
            names = {name for name, _ in given}
            given += [pair for pair in SAFE_HEADERS if pair[0] not in names]
            given += [(b"x-request-id", self._id.encode()), *self.more]
            message["headers"] = given
        await self._send(message)


def _route(methods: dict[str, Route], method: str) -> Route:
    if not methods:
        raise HttpError(404, "unknown_path", "Unknown path.")
    found = methods.get("GET" if method == "HEAD" else method)
    if found is None or (method == "HEAD" and found.streams):
        allowed = ", ".join(sorted(methods)).encode()
        words = "This path does not support that method."
        raise HttpError(405, "method_not_allowed", words, headers=((b"allow", allowed),))
    return found
