"""The ASGI application: checks, routes, answers and counts every request."""

from __future__ import annotations

import asyncio
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
        reply = _ResponseSender(
            send, f"req_{self._server.app.run.world.chance.getrandbits(64):016x}"
        )
        call = ApiRequest(scope, receive, reply.send)
        try:
            given = await self._answer(call, reply)
            if given is not None:
                await call.respond(given)
        except HttpError as refusal:
            await self._refuse(call, reply, refusal)
        except HermesError as error:
            await self._refuse(call, reply, http_error(error))
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("a request crashed", extra={"route": call.route})
            words = "Internal error; see the server log."
            await self._refuse(call, reply, HttpError(500, "internal", words, headers=NO_RETRY))
        finally:
            if reply.status:
                key = (call.method, call.route or "-", reply.status)
                self._server.metrics.requests[key] += 1

    async def _answer(self, call: ApiRequest, reply: _ResponseSender) -> ApiResponse | None:
        self._guard.check_host(call.headers)
        reply.more = self._guard.cors(call.headers)
        if call.method == "OPTIONS" and reply.more:
            return ApiResponse(status=204, body=b"", headers=PREFLIGHT)
        methods, names = self._table.find(call.path)
        route = _route(methods, call.method)
        call.route, call.path_params = route.path, names
        call.client = self._guard.authenticate(call.headers, route.scope)
        if key := call.session_key:
            reply.more += ((b"x-hermes-session-key", key.encode("latin-1")),)
        if route.body is not None:
            await call.read_body(route.body)
        return await route.handler(self._server, call)

    async def _refuse(self, call: ApiRequest, reply: _ResponseSender, refusal: HttpError) -> None:
        if reply.status:
            # The response has started; it can only be ended.
            await reply.send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        headers = ((b"content-type", b"application/json"), *refusal.headers)
        # Errors may quote responses of other servers.
        words = self._server.app.run.redactor.redact_known(str(refusal))
        body = HttpError(refusal.status, refusal.code, words, param=refusal.param).body
        await call.respond(ApiResponse(status=refusal.status, body=body, headers=headers))


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
