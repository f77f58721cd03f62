"""The MCP server: offers conversations as tools and resources, over stdio or HTTP."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, cast

from mcp.server.mcpserver import MCPServer
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
    ToolAnnotations,
)
from starlette.types import ASGIApp, Receive, Scope, Send

from hermes.codec.values import JsonObject
from hermes.core.errors import HermesError
from hermes.surfaces.mcp.conversations import ACTING_TOOLS, READING_TOOLS, Conversations
from hermes.version import __version__

INSTRUCTIONS = (
    "The conversations of a Hermes agent. List or search them, read messages, follow events with "
    "events_poll or events_wait from a cursor, send messages, and answer approvals that a "
    "conversation waits for."
)
READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
ACTS = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)


def errors_as_data(
    tool: Callable[..., Awaitable[JsonObject]],
) -> Callable[..., Awaitable[JsonObject]]:
    """Wraps a tool so that it returns errors as data."""

    @wraps(tool)
    async def run(*args: Any, **named: Any) -> JsonObject:
        try:
            return await tool(*args, **named)
        except HermesError as error:
            return {"error": str(error)}

    return run


def make_server(conversations: Conversations, *, read_only: bool = False) -> MCPServer[Any]:
    """All tools, or only the read-only ones."""
    server: MCPServer[Any] = MCPServer(
        "hermes",
        title="Hermes",
        version=__version__,
        instructions=INSTRUCTIONS,
        log_level="WARNING",
    )
    for name in READING_TOOLS:
        server.add_tool(errors_as_data(getattr(conversations, name)), annotations=READS)
    for name in () if read_only else ACTING_TOOLS:
        server.add_tool(errors_as_data(getattr(conversations, name)), annotations=ACTS)
    _add_resources(server, conversations)
    return server


def _add_resources(server: MCPServer[Any], conversations: Conversations) -> None:
    @server.resource(
        "hermes://conversations",
        name="conversations",
        description="The newest conversations",
        mime_type="application/json",
    )
    async def newest() -> JsonObject:
        return await errors_as_data(conversations.conversations_list)()

    @server.resource(
        "hermes://conversations/{session_key}",
        name="conversation",
        description="The newest messages of a conversation",
        mime_type="application/json",
    )
    async def conversation(session_key: str) -> JsonObject:
        return await errors_as_data(conversations.messages_read)(session_key, 200)

    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion:
        if argument.name != "session_key":
            return Completion(values=[])
        return Completion(values=await conversations.beginning_with(argument.value))

    # This decorator of the library is untyped.
    cast(Any, server).completion()(complete)


HTTP_PATH = "/mcp"
REFUSED = b'{"error":"unauthorized"}'


class TokenMiddleware:
    """An ASGI layer that passes on requests with the bearer token and rejects all others before
    reading them."""

    def __init__(self, inner: ASGIApp, token: str) -> None:
        self._inner = inner
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        authorization = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] == "lifespan" or hmac.compare_digest(authorization, self._expected):
            await self._inner(scope, receive, send)
            return
        headers = [
            (b"content-type", b"application/json"),
            (b"www-authenticate", b"Bearer"),
            (b"content-length", str(len(REFUSED)).encode()),
        ]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": REFUSED})


async def serve_http(
    server: MCPServer[Any], *, token: str, host: str, port: int, cert: str, key: str
) -> None:
    """Serve until the process is stopped. With certificate and key, TLS is used."""
    import uvicorn

    app = server.streamable_http_app(streamable_http_path=HTTP_PATH, host=host)
    config = uvicorn.Config(
        TokenMiddleware(app, token),
        host=host,
        port=port,
        ssl_certfile=cert or None,
        ssl_keyfile=key or None,
        log_level="warning",
        access_log=False,
    )
    await uvicorn.Server(config).serve()
