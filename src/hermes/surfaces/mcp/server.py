"""The MCP server: offers conversations as tools and resources, over stdio or HTTP."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable
from typing import Annotated, Any, Literal, cast

from mcp.server.mcpserver import MCPServer
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
    ToolAnnotations,
)
from pydantic import Field
from starlette.types import ASGIApp, Receive, Scope, Send

from hermes.core.errors import HermesError
from hermes.surfaces.mcp.conversations import Conversations
from hermes.version import __version__

INSTRUCTIONS = (
    "The conversations of a Hermes agent. List or search them, read messages, follow events with "
    "events_poll or events_wait from a cursor, send messages, and answer approvals that a "
    "conversation waits for."
)
READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
ACTS = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)

Key = Annotated[str, Field(description="Id, beginning of an id, or title of a conversation")]
Cursor = Annotated[int, Field(ge=0, description="next_cursor of an earlier answer")]
ToolAnswer = dict[str, Any]


async def _tool_result(work: Awaitable[ToolAnswer]) -> ToolAnswer:
    """Return errors as data."""
    try:
        return await work
    except HermesError as error:
        return {"error": str(error)}


def make_server(conversations: Conversations, *, read_only: bool = False) -> MCPServer[Any]:
    """All tools, or only the read-only ones."""
    server: MCPServer[Any] = MCPServer(
        "hermes",
        title="Hermes",
        version=__version__,
        instructions=INSTRUCTIONS,
        log_level="WARNING",
    )
    _add_reading(server, conversations)
    _add_following(server, conversations)
    if not read_only:
        _add_acting(server, conversations)
    _add_resources(server, conversations)
    return server


def _add_reading(server: MCPServer[Any], conversations: Conversations) -> None:
    @server.tool(annotations=READS)
    async def conversations_list(
        platform: Annotated[str, Field(description="Only of this surface, e.g. cli")] = "",
        limit: Annotated[int, Field(ge=1, le=200)] = 50,
        search: Annotated[str, Field(description="Only where these words occur")] = "",
    ) -> ToolAnswer:
        """List conversations, those last used first."""
        return await _tool_result(conversations.list_conversations(platform, limit, search))

    @server.tool(annotations=READS)
    async def conversation_get(session_key: Key) -> ToolAnswer:
        """One conversation, with token counts."""
        return await _tool_result(conversations.get(session_key))

    @server.tool(annotations=READS)
    async def messages_read(
        session_key: Key, limit: Annotated[int, Field(ge=1, le=200)] = 50
    ) -> ToolAnswer:
        """The newest messages of a conversation, oldest first."""
        return await _tool_result(conversations.messages(session_key, limit))

    @server.tool(annotations=READS)
    async def messages_search(
        query: str, limit: Annotated[int, Field(ge=1, le=100)] = 10
    ) -> ToolAnswer:
        """Find messages in all conversations."""
        return await _tool_result(conversations.search(query, limit))

    @server.tool(annotations=READS)
    async def attachments_fetch(session_key: Key, message_id: int) -> ToolAnswer:
        """The files that came with a message."""
        return await _tool_result(conversations.attachments(session_key, message_id))

    @server.tool(annotations=READS)
    async def channels_list(platform: str = "") -> ToolAnswer:
        """Where messages_send can send to."""
        return await _tool_result(conversations.channels(platform))


def _add_following(server: MCPServer[Any], conversations: Conversations) -> None:
    @server.tool(annotations=READS)
    async def events_poll(
        after_cursor: Cursor = 0,
        session_key: Key = "",
        limit: Annotated[int, Field(ge=1, le=1000)] = 20,
    ) -> ToolAnswer:
        """What happened after a cursor: messages, approvals, questions, ends of turns."""
        return await _tool_result(conversations.events(after_cursor, session_key, limit))

    @server.tool(annotations=READS)
    async def events_wait(
        after_cursor: Cursor = 0,
        session_key: Key = "",
        timeout_ms: Annotated[int, Field(ge=0, le=300_000)] = 30_000,
    ) -> ToolAnswer:
        """Wait for the next event after a cursor."""
        return await _tool_result(conversations.wait(after_cursor, session_key, timeout_ms))

    @server.tool(annotations=READS)
    async def permissions_list_open() -> ToolAnswer:
        """Approvals that conversations wait for now."""
        return await _tool_result(conversations.approvals())


def _add_acting(server: MCPServer[Any], conversations: Conversations) -> None:
    @server.tool(annotations=ACTS)
    async def messages_send(
        target: Annotated[str, Field(description='A conversation, or "new"')], message: str
    ) -> ToolAnswer:
        """Say something in a conversation; the answer comes as an event."""
        return await _tool_result(conversations.send(target, message))

    @server.tool(annotations=ACTS)
    async def permissions_respond(
        id: Annotated[str, Field(description="Of an open approval")],
        decision: Literal["allow-once", "allow-always", "deny"],
    ) -> ToolAnswer:
        """Decide about an approval. Do so only on the word of the person."""
        return await _tool_result(conversations.respond(id, decision))


def _add_resources(server: MCPServer[Any], conversations: Conversations) -> None:
    @server.resource(
        "hermes://conversations",
        name="conversations",
        description="The newest conversations",
        mime_type="application/json",
    )
    async def newest() -> ToolAnswer:
        return await _tool_result(conversations.list_conversations("", 50, ""))

    @server.resource(
        "hermes://conversations/{session_key}",
        name="conversation",
        description="The newest messages of a conversation",
        mime_type="application/json",
    )
    async def conversation(session_key: str) -> ToolAnswer:
        return await _tool_result(conversations.messages(session_key, 200))

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
    """Passes on requests with the bearer token and rejects all others before reading them."""

    def __init__(self, inner: ASGIApp, token: str) -> None:
        self._inner = inner
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] == "lifespan" or hmac.compare_digest(given, self._expected):
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
