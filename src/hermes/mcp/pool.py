"""All MCP servers of one run: cached tool lists and connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.values import Value, replace
from hermes.core.errors import NotFound
from hermes.core.prompt import ToolSpec
from hermes.core.tools import Tool
from hermes.core.world import World
from hermes.mcp.link import ServerLink
from hermes.mcp.listing import (
    ListingCache,
    ToolListing,
    file_name,
    select_tools,
    texts_of,
    tool_names,
    without_texts,
)
from hermes.mcp.server import McpServer, MissingLibrary, ServerFault, expand_server
from hermes.mcp.server_requests import ServerRequests
from hermes.mcp.tools import ServerTool

if TYPE_CHECKING:
    from hermes.mcp.connection import McpConnection

# Returns what is suspicious in a text, or "", and whether it must be withheld.
Scan = Callable[[str], tuple[str, bool]]


class ServerEnvironment(Value):
    """Folders, variables and working folder for servers."""

    cache: Path
    logs: Path
    tokens: Path
    variables: dict[str, str]
    person: str
    folder: str


class ServerPool:
    """The connections of a run to its servers. `changed` is called when a server's tools differ
    from the cache; `scan` checks their descriptions."""

    def __init__(
        self,
        servers: Sequence[McpServer],
        environment: ServerEnvironment,
        world: World,
        *,
        scan: Scan = lambda _: ("", False),
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.servers = {server.name: server for server in servers}
        self._environment = environment
        self._world = world
        self._scan = scan
        self._changed = changed
        self._listing_cache = ListingCache(environment.cache)
        self._links: dict[str, ServerLink] = {}
        self._known: dict[str, ToolListing] = {}
        self._swept = False

    def cached_listing(self, name: str) -> ToolListing | None:
        """Return the cached listing for the current settings."""
        if name not in self._known and (reusable := self._listing_cache.get(self.servers[name])):
            self._known[name] = reusable
        return self._known.get(name)

    def uncached_servers(self) -> tuple[str, ...]:
        """Return servers without a cached listing."""
        return tuple(name for name in self.servers if self.cached_listing(name) is None)

    def list_tools(self) -> list[tuple[ToolSpec, Tool]]:
        """Return the tools of all known servers under unique names."""
        tools = [
            (server, tool)
            for server in self.servers.values()
            if (listing := self.cached_listing(server.name)) is not None
            for tool in select_tools(server, listing)
        ]
        names = tool_names((server.name, tool.name) for server, tool in tools)
        made = [
            ServerTool(names[server.name, tool.name], tool, server, self.link)
            for server, tool in tools
        ]
        return [(tool.spec, tool) for tool in made]

    async def discover(self, names: Sequence[str], *, seconds: float) -> dict[str, str]:
        """Connect to the servers concurrently; return errors by name. A late server continues on
        its first call."""

        async def meet(name: str) -> str:
            try:
                async with asyncio.timeout(seconds):
                    await self.link(name).listing()
            except ServerFault as fault:
                return str(fault)
            except TimeoutError:
                return f"MCP server {name} did not answer within {seconds:g}s"
            return ""

        faults = await asyncio.gather(*(meet(name) for name in names))
        return {name: fault for name, fault in zip(names, faults, strict=True) if fault}

    def link(self, server: str) -> ServerLink:
        """Return the link; raise NotFound when the settings have no such server."""
        if server not in self.servers:
            raise NotFound(f"There is no MCP server {server!r}; `hermes mcp list` shows all.")
        if server not in self._links:
            whole = self._whole(self.servers[server])
            self._links[server] = ServerLink(
                whole,
                partial(self._connect, whole),
                self._on_listing,
                self._world,
                self._environment.folder,
            )
        return self._links[server]

    async def replace(self, servers: Sequence[McpServer]) -> tuple[list[str], list[str], list[str]]:
        """Apply new settings; only servers with a changed connection are closed. Return added,
        changed and removed names."""
        new = {server.name: server for server in servers}
        old, self.servers = self.servers, new
        added = [name for name in new if name not in old]
        removed = [name for name in old if name not in new]
        changed = [name for name in new if name in old and new[name] != old[name]]
        reusable = [name for name in changed if old[name].is_reached_like(new[name])]
        for name in reusable:
            if link := self._links.get(name):
                link.retune(self._whole(new[name]))
        closed = [name for name in (*removed, *changed) if name not in reusable]
        for name in closed:
            self._known.pop(name, None)
        links = [self._links.pop(name) for name in closed if name in self._links]
        await asyncio.gather(*(link.retire() for link in links))
        return added, changed, removed

    async def disconnect(self) -> None:
        """Close all connections after their running calls; the next use connects again."""
        links, self._links = self._links, {}
        await asyncio.gather(*(link.retire() for link in links.values()))

    async def close(self) -> None:
        links, self._links = self._links, {}
        await asyncio.gather(*(link.close() for link in links.values()))

    def _whole(self, server: McpServer) -> McpServer:
        environment = self._environment
        return expand_server(
            server, environment.variables, home=environment.person, folder=environment.folder
        )

    def _on_listing(self, server: McpServer, listing: ToolListing) -> None:
        plain = self.servers.get(server.name)
        if plain is None:
            return
        tools = []
        for tool in listing.tools:
            # Marks descriptions that look like prompt injections. Clearly dangerous ones are
            # withheld from the model.
            finding, dangerous = self._scan("\n".join((tool.description, *texts_of(tool.schema))))
            if dangerous:
                tool = replace(tool, description="", schema=without_texts(tool.schema))
            tools.append(replace(tool, finding=finding))
        listing = replace(listing, tools=tuple(tools))
        if listing != self.cached_listing(server.name):
            self._known[server.name] = listing
            self._listing_cache.put(plain, listing)
            self._changed()

    @asynccontextmanager
    async def _connect(
        self, server: McpServer, answering: ServerRequests, changed: Callable[[], None]
    ) -> AsyncIterator[McpConnection]:
        if find_spec("mcp") is None:
            raise MissingLibrary
        # The library takes over a second to load, so only a call pays for it.
        from hermes.mcp.connection import connect
        from hermes.mcp.oauth.bearer import auth_for
        from hermes.mcp.transport import ChildRegistry, streams_of

        registry = ChildRegistry(self._environment.cache / "children")
        if not self._swept:
            self._swept = True
            await asyncio.to_thread(registry.kill_orphans)
        log = self._environment.logs / f"{file_name(server.name)}.log"
        streams = streams_of(
            server,
            variables=self._environment.variables,
            log=log,
            registry=registry,
            auth=auth_for(server, self._environment.tokens, self._world.clock),
        )
        async with connect(server, streams, answering=answering, changed=changed) as made:
            yield made
