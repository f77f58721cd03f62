"""Serves MCP over HTTP behind a bearer token."""

from __future__ import annotations

import hmac
from typing import Any

from mcp.server.mcpserver import MCPServer
from starlette.types import ASGIApp, Receive, Scope, Send

from hermes.codec.values import Value

HTTP_PATH = "/mcp"
REFUSED = b'{"error":"unauthorized"}'


class HttpAddress(Value):
    """The address to listen on; with certificate and key it uses TLS."""

    host: str
    port: int
    certificate: str = ""
    key: str = ""


class TokenMiddleware:
    """Passes on requests with the bearer token and rejects all others before reading them."""

    def __init__(self, inner: ASGIApp, token: str) -> None:
        self._inner = inner
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._is_known(scope):
            await self._inner(scope, receive, send)
            return
        headers = [
            (b"content-type", b"application/json"),
            (b"www-authenticate", b"Bearer"),
            (b"content-length", str(len(REFUSED)).encode()),
        ]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": REFUSED})

    def _is_known(self, scope: Scope) -> bool:
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        return hmac.compare_digest(given, self._expected)


def app_of(server: MCPServer[Any], token: str, host: str) -> ASGIApp:
    return TokenMiddleware(
        server.streamable_http_app(streamable_http_path=HTTP_PATH, host=host), token
    )


async def serve_http(server: MCPServer[Any], *, token: str, place: HttpAddress) -> None:
    """Serve until the process is told to stop."""
    import uvicorn

    config = uvicorn.Config(
        app_of(server, token, place.host),
        host=place.host,
        port=place.port,
        ssl_certfile=place.certificate or None,
        ssl_keyfile=place.key or None,
        log_level="warning",
        access_log=False,
    )
    await uvicorn.Server(config).serve()
