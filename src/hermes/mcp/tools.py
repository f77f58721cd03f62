"""Tools of MCP servers as Hermes tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext

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


class ServerTool(Tool):
    """A tool of an MCP server. `name` is our name for the tool. The link is requested when the tool
    runs."""

    def __init__(
        self,
        name: str,
        foreign: ListedTool,
        server: McpServer,
        link: Callable[[str], ServerLink],
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
        self._link = link

    @property
    def spec(self) -> ToolSpec:
        description = self._foreign.description
        if self._foreign.utility:
            description = description.replace("this server", self._server.name)
        if self._foreign.finding:
            description = f"[unverified: {self._foreign.finding}] {description}"
        return ToolSpec(name=self.name, description=description, parameters=self._foreign.schema)

    def _effects(self, _place: PathContext, arguments: JsonObject) -> Iterable[Effect]:
        distrusted = self._server.trust == "untrusted" and not self._foreign.read_only
        yield CallServer(
            server=self._server.name + (DISTRUSTED if distrusted else ""),
            tool=self._foreign.name,
            arguments=encode(arguments).decode(),
            changes=not self._reads,
        )

    async def __call__(self, ctx: ToolContext, arguments: JsonObject) -> ToolOutput:
        services = ctx.service(CallServices)
        try:
            link = self._link(self._server.name)
        except NotFound as error:
            raise ToolError(str(error)) from error
        reading = ResultReader(ctx, link.server, services)
        caller = ToolCaller(ctx, services)
        try:
            if self._foreign.utility:
                return await self._utility(link, reading, arguments)
            # A local program may write files, whatever it declares.
            watch = services.watch if self._server.command else lambda *_: nullcontext()
            async with watch(ctx.workspace, arguments, self._foreign.read_only):
                result = await link.call(
                    lambda connection: connection.call(self._foreign.name, arguments, caller),
                    caller,
                )
        except ServerFault as fault:
            answer = {"error": str(fault)} | ({"retryable": True} if fault.retryable else {})
            # Only a protocol error contains the server's own text.
            origin = link.server.origin if isinstance(fault, ServerError) else "workspace"
            parts = (Text(text=encode(answer).decode()),)
            return ToolOutput(parts=parts, failed=True, origin=origin)
        return await reading.output(result, structured=self._foreign.structured)

    async def _utility(
        self, link: ServerLink, reading: ResultReader, arguments: JsonObject
    ) -> ToolOutput:
        match self._foreign.name:
            case name if name == LIST_RESOURCES:
                resources = await link.call(lambda connection: connection.resources())
                resources += await link.call(lambda connection: connection.resource_templates())
                return _list_output(link.server, resources)
            case name if name == READ_RESOURCE:
                uri = str(arguments.get("uri", ""))
                contents = await link.call(lambda connection: connection.read(uri))
                parts = [await reading.resource(each) for each in contents]
                return ToolOutput(parts=tuple(parts), origin=link.server.origin)
            case name if name == LIST_PROMPTS:
                return _list_output(link.server, await link.call(lambda c: c.prompts()))
            case name if name == GET_PROMPT:
                raw = arguments.get("arguments") or {}
                texts = {str(key): str(value) for key, value in raw.items()}
                wanted = str(arguments.get("name", ""))
                messages = await link.call(lambda connection: connection.prompt(wanted, texts))
                filled: list[Text | Image] = []
                for message in messages:
                    filled.append(Text(text=f"[{message.get('role', 'user')}]\n"))
                    filled += await reading.parts([message.get("content")])
                return ToolOutput(parts=tuple(filled), origin=link.server.origin)
            case _:
                raise ToolError(f"{self.name} is not available.")


def _list_output(server: McpServer, items: JsonValue) -> ToolOutput:
    lines = "\n".join(encode(each).decode() for each in items) or "There are none."
    return ToolOutput(parts=(Text(text=lines),), origin=server.origin)
