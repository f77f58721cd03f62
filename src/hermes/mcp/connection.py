"""An open connection to a server: wraps the official library."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast

import httpx2
from mcp import Client, MCPError
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    REQUEST_TIMEOUT,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    Implementation,
    ListRootsResult,
    Root,
    SamplingCapability,
    SamplingToolsCapability,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from hermes.codec.values import JsonObject
from hermes.core.errors import HermesError
from hermes.mcp.calls import ToolCaller
from hermes.mcp.listing import ListedTool, ToolListing, clean_description, clean_schema
from hermes.mcp.server import (
    CallTimeout,
    ConnectionLost,
    McpServer,
    NeedsLogin,
    ServerError,
    ServerFault,
    SessionExpired,
    mask_secrets,
)
from hermes.mcp.server_requests import ServerRequests
from hermes.mcp.transport import Streams
from hermes.version import __version__

PAGES = 50
T = TypeVar("T")
Changed = Callable[[], None]
INVALID, INTERNAL = -32602, -32603


class McpConnection:
    """An open connection to a server. Any task of the loop may use it. It raises ServerFault."""

    def __init__(self, client: Client, server: McpServer) -> None:
        self._client = client
        self._server = server

    def retune(self, server: McpServer) -> None:
        """Apply changed settings."""
        self._server = server

    async def ping(self) -> None:
        """Check that the server responds; raise ServerFault. The newest protocol has no ping."""
        if self._client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        try:
            async with asyncio.timeout(self._server.keepalive_interval):
                await self._client.session.send_ping()
        except Exception as error:
            raise translate_error(self._server, error, "the ping") from error

    async def listing(self) -> ToolListing:
        """List all tools, cleaned for models."""
        able = self._client.server_capabilities
        tools: list[ListedTool] = []
        if able.tools is not None:
            pages = await self._pages(self._client.list_tools)
            tools = [_listed_tool(tool) for page in pages for tool in page.tools]
        info = self._client.server_info
        return ToolListing(
            tools=tuple(tools),
            resources=able.resources is not None,
            prompts=able.prompts is not None,
            title=f"{info.name} {info.version}".strip() if info else "",
            protocol=self._client.protocol_version,
        )

    async def call(self, tool: str, arguments: JsonObject, caller: ToolCaller | None) -> JsonObject:
        """Return the result as plain JSON, within the server's timeout."""

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            if caller is not None:
                of = f"/{total:g}" if total else ""
                caller.ctx.progress(message or f"{progress:g}{of}")

        result = await self._translate_errors(
            self._client.call_tool(
                tool,
                arguments,
                read_timeout_seconds=self._server.timeout,
                progress_callback=tell,
            ),
            what=f"tool {tool}",
        )
        return cast(JsonObject, _plain(result))

    async def resources(self) -> list[JsonObject]:
        pages = await self._pages(self._client.list_resources)
        return [_plain(each) for page in pages for each in page.resources]

    async def resource_templates(self) -> list[JsonObject]:
        pages = await self._pages(self._client.list_resource_templates)
        return [_plain(each) for page in pages for each in page.resource_templates]

    async def read(self, uri: str) -> list[JsonObject]:
        result = await self._translate_errors(
            self._client.read_resource(uri), what=f"resource {uri}"
        )
        return [_plain(each) for each in result.contents]

    async def prompts(self) -> list[JsonObject]:
        pages = await self._pages(self._client.list_prompts)
        return [_plain(each) for page in pages for each in page.prompts]

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[JsonObject]:
        result = await self._translate_errors(
            self._client.get_prompt(name, arguments), what=f"prompt {name}"
        )
        return [_plain(each) for each in result.messages]

    async def _pages(self, list_page: Callable[..., Awaitable[T]]) -> list[T]:
        pages: list[T] = []
        cursor: str | None = None
        for _ in range(PAGES):
            page = await self._translate_errors(
                list_page(cursor=cursor, cache_mode="refresh"), what="the list"
            )
            pages.append(page)
            cursor = cast(Any, page).next_cursor
            if not cursor:
                break
        return pages

    async def _translate_errors(self, work: Awaitable[T], *, what: str) -> T:
        try:
            async with asyncio.timeout(self._server.timeout + 5):
                return await work
        except Exception as error:
            raise translate_error(self._server, error, what) from error


@asynccontextmanager
async def connect(
    server: McpServer,
    streams: Streams,
    *,
    answering: ServerRequests,
    changed: Changed,
) -> AsyncIterator[McpConnection]:
    """Open a connection over a transport; raise ServerFault."""

    async def sample(
        context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | CreateMessageResultWithTools | ErrorData:
        try:
            made = await answering.sample(_plain(params))
        except HermesError as error:
            return ErrorData(code=INTERNAL, message=str(error))
        kind = CreateMessageResultWithTools if params.tools else CreateMessageResult
        return kind.model_validate(made)

    async def elicit(
        context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        try:
            return ElicitResult.model_validate(await answering.elicit(_plain(params)))
        except HermesError as error:
            return ErrorData(code=INVALID, message=str(error))

    async def list_roots(context: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(roots=[Root.model_validate(root) for root in answering.roots()])

    async def on_message(message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            changed()

    client = Client(
        cast(Any, streams),
        client_info=Implementation(name="hermes-agent", title="Hermes", version=__version__),
        sampling_callback=sample if server.sampling.enabled else None,
        sampling_capabilities=SamplingCapability(tools=SamplingToolsCapability()),
        elicitation_callback=elicit if server.elicitation.enabled else None,
        list_roots_callback=list_roots,
        message_handler=on_message,
        cache=None,
    )
    async with client:
        listener = asyncio.ensure_future(_watch_tool_list(client, changed))
        try:
            yield McpConnection(client, server)
        finally:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)


async def _watch_tool_list(client: Client, changed: Changed) -> None:
    """Subscribe to tool-list changes, as the newest protocol requires."""
    able = client.server_capabilities.tools
    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (able and able.list_changed):
        return
    async with client.listen(tools_list_changed=True) as changes:
        async for _ in changes:
            changed()


def translate_error(
    server: McpServer, error: BaseException, what: str = "the handshake"
) -> ServerFault:
    """Map an exception of the library to a ServerFault."""
    cause = error
    while isinstance(cause, BaseExceptionGroup):
        # Several tasks fail for one reason; our own error is the most specific.
        inner = cause.exceptions
        cause = next((each for each in inner if isinstance(each, ServerFault)), inner[0])
    name = f"MCP server {server.name}"
    match cause:
        case ServerFault():
            return cause
        case TimeoutError():
            return CallTimeout(f"MCP {what} timed out after {server.timeout:g}s", retryable=True)
        case MCPError() if cause.code == REQUEST_TIMEOUT:
            return CallTimeout(f"MCP {what} timed out after {server.timeout:g}s", retryable=True)
        case MCPError() if cause.code == CONNECTION_CLOSED:
            return ConnectionLost(
                f"{name} closed the connection during {what}; the outcome is unknown, "
                "check before you repeat it.",
                retryable=True,
            )
        case MCPError() if cause.code == INVALID_REQUEST and cause.message == "Session terminated":
            return SessionExpired(f"{name} ended the session.", retryable=True)
        case MCPError():
            return ServerError(mask_secrets(server, f"{name}: {cause.message} (code {cause.code})"))
        case httpx2.HTTPStatusError() if cause.response.status_code in (401, 403):
            return NeedsLogin(server.name)
        case httpx2.TransportError():
            cause_text = mask_secrets(server, str(cause)) or type(cause).__name__
            return ConnectionLost(f"{name} cannot be reached: {cause_text}.", retryable=True)
        case _:
            return ServerError(mask_secrets(server, f"{name}: {cause}"))


def _plain(model: Any) -> Any:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def _listed_tool(tool: Any) -> ListedTool:
    hints = tool.annotations
    return ListedTool(
        name=tool.name,
        description=clean_description(tool.description or tool.title or ""),
        schema=clean_schema(_plain(tool).get("inputSchema", {})),
        read_only=bool(hints and hints.read_only_hint),
        structured=tool.output_schema is not None,
    )
