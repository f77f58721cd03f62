"""Tools of MCP servers as Hermes tools."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Protocol

from hermes.codec.json import encode
from hermes.codec.signature import GivenParameters
from hermes.codec.values import JsonObject, JsonValue
from hermes.core.effects import CallServer, Effect
from hermes.core.errors import NotFound, ToolError
from hermes.core.messages import Image, Text
from hermes.core.prompt import ToolSpec
from hermes.core.tools import PathContext, Tool, ToolContext, ToolOutput
from hermes.mcp.calls import CallServices, ResultReader, ToolCaller
from hermes.mcp.link import ServerLink
from hermes.mcp.listing import GET_PROMPT, LIST_PROMPTS, LIST_RESOURCES, READ_RESOURCE, ListedTool
from hermes.mcp.server import McpServer, ServerError, ServerFault

# A policy rule asks about every effect on such a server.
DISTRUSTED = " (untrusted)"


class LinkProvider(Protocol):
    def link(self, server: str) -> ServerLink: ...


class ServerTool(Tool):
    """`name` is our name for the tool. The link is requested when the tool first runs."""

    def __init__(
        self, name: str, foreign: ListedTool, server: McpServer, links: LinkProvider
    ) -> None:
        self.name = name
        self.description = foreign.description
        self.parameters = GivenParameters(foreign.schema)
        self.effects = self._effects
        # The hint counts only for trusted servers.
        self._reads = foreign.read_only and server.trust == "full"
        self.repeat = "safe" if self._reads else "never"
        self.interactive = False
        self._foreign = foreign
        self._server = server
        self._links = links

    @property
    def spec(self) -> ToolSpec:
        return spec_of(self.name, self._server, self._foreign)

    def _effects(self, _place: PathContext, arguments: JsonObject) -> Iterable[Effect]:
        distrusted = self._server.trust == "untrusted" and not self._foreign.read_only
        yield CallServer(
            server=self._server.name + (DISTRUSTED if distrusted else ""),
            tool=self._foreign.name,
            arguments=encode(arguments).decode(),
            changes=not self._reads,
        )

    async def __call__(self, ctx: ToolContext, arguments: JsonObject) -> ToolOutput:
        hosting = ctx.service(CallServices)
        try:
            link = self._links.link(self._server.name)
        except NotFound as error:
            raise ToolError(str(error)) from error
        reading = ResultReader(ctx, link.server, hosting)
        caller = ToolCaller(ctx, hosting)
        try:
            if self._foreign.utility:
                return await self._utility(link, reading, arguments)
            async with self._watch_files(ctx, arguments):
                result = await link.call(
                    lambda connection: connection.call(self._foreign.name, arguments, caller),
                    caller,
                )
        except ServerFault as fault:
            return _error_output(link.server, fault)
        return await reading.output(result, structured=self._foreign.structured)

    def _watch_files(
        self, ctx: ToolContext, arguments: JsonObject
    ) -> AbstractAsyncContextManager[None]:
        """A local program may write files, whatever it declares."""
        if not self._server.command:
            return nullcontext()
        return ctx.service(CallServices).watch(ctx.workspace, arguments, self._foreign.read_only)

    async def _utility(
        self, link: ServerLink, reading: ResultReader, arguments: JsonObject
    ) -> ToolOutput:
        match self._foreign.name:
            case name if name == LIST_RESOURCES:
                found = await link.call(lambda connection: connection.resources())
                found += await link.call(lambda connection: connection.resource_templates())
                return _list_output(link.server, found)
            case name if name == READ_RESOURCE:
                uri = str(arguments.get("uri", ""))
                contents = await link.call(lambda connection: connection.read(uri))
                parts = [await reading.resource(each) for each in contents]
                return ToolOutput(parts=tuple(parts), origin=link.server.origin)
            case name if name == LIST_PROMPTS:
                return _list_output(link.server, await link.call(lambda c: c.prompts()))
            case name if name == GET_PROMPT:
                return await self._prompt(link, reading, arguments)
            case _:
                raise ToolError(f"{self.name} is not available.")

    async def _prompt(
        self, link: ServerLink, reading: ResultReader, arguments: JsonObject
    ) -> ToolOutput:
        given = {str(key): str(value) for key, value in (arguments.get("arguments") or {}).items()}
        wanted = str(arguments.get("name", ""))
        messages = await link.call(lambda connection: connection.prompt(wanted, given))
        parts: list[Text | Image] = []
        for message in messages:
            parts.append(Text(text=f"[{message.get('role', 'user')}]\n"))
            parts += await reading.parts([message.get("content")])
        return ToolOutput(parts=tuple(parts), origin=link.server.origin)


def spec_of(name: str, server: McpServer, foreign: ListedTool) -> ToolSpec:
    words = foreign.description
    if foreign.utility:
        words = words.replace("this server", server.name)
    if foreign.finding:
        words = f"[unverified: {foreign.finding}] {words}"
    return ToolSpec(name=name, description=words, parameters=foreign.schema)


def _list_output(server: McpServer, found: JsonValue) -> ToolOutput:
    lines = "\n".join(encode(each).decode() for each in found) or "There are none."
    return ToolOutput(parts=(Text(text=lines),), origin=server.origin)


def _error_output(server: McpServer, fault: ServerFault) -> ToolOutput:
    answer: JsonObject = {"error": str(fault)}
    if fault.retryable:
        answer["retryable"] = True
    text = encode(answer).decode()
    # Only a protocol error contains the server's own text.
    origin = server.origin if isinstance(fault, ServerError) else "workspace"
    return ToolOutput(parts=(Text(text=text),), failed=True, origin=origin)
