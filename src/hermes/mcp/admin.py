"""Administration of MCP servers: add, test, log in, enable, choose tools."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from hermes.codec.json import plain
from hermes.codec.values import JsonObject, JsonValue, Value, replace
from hermes.config.edit import set_from_text, write_settings
from hermes.config.environment import is_secret_name
from hermes.config.extension_settings import McpServerSettings, McpToolSettings
from hermes.config.home import Home
from hermes.config.migrations import REMOVED
from hermes.config.run_context import RunContext
from hermes.config.schema import KeyPath
from hermes.config.settings import Settings
from hermes.core.errors import NotFound, UsageError
from hermes.mcp.listing import ListingCache, ToolListing, select_tools, tool_names
from hermes.mcp.oauth.store import OAuthStore
from hermes.mcp.run_servers import configured_pool, find_server, server_from_settings
from hermes.mcp.server import (
    McpServer,
    MissingLibrary,
    NeedsLogin,
    expand_server,
    require_valid,
    unset_variables,
)

if TYPE_CHECKING:
    from hermes.credentials.oauth.redirect import BrowserScreen

TOOLSET_PREFIX = "mcp-"
ALL = McpToolSettings()
_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}"


class ServerRow(Value):
    """A configured server. `tools` is None if it was never connected."""

    name: str
    place: str
    enabled: bool
    auth: str = ""
    logged_in: bool = False
    tools: int | None = None
    fault: str = ""


class ToolRow(Value):
    """One tool of a server in a list."""

    name: str  # its name in sessions
    tool: str  # its name at the server
    offered: bool
    read_only: bool = False
    finding: str = ""
    description: str = ""


class ServerTrial(Value):
    """The result of a test connection."""

    name: str
    milliseconds: int
    tools: int
    resources: int
    prompts: int
    title: str
    protocol: str
    unset: tuple[str, ...] = ()


class McpAdmin:
    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._listings = ListingCache(run.home.cache / "mcp")

    def rows(self) -> list[ServerRow]:
        rows = []
        for name, settings in sorted(self._run.settings.mcp_servers.items()):
            server = server_from_settings(name, settings)
            listing = self._listings.get(server)
            logged_in = server.uses_client_credentials or (
                settings.auth == "oauth" and self._tokens(name).token() is not None
            )
            row = ServerRow(
                name=name,
                place=server.location,
                enabled=settings.enabled,
                auth=settings.auth,
                logged_in=logged_in,
                tools=len(select_tools(server, listing)) if listing else None,
                fault=server.fault(),
            )
            rows.append(row)
        return rows

    def tools(self, name: str) -> list[ToolRow]:
        """List the tools as last seen; none if the server was never connected."""
        server = find_server(self._run, name)
        listing = self._listings.get(server) or ToolListing()
        offered = {tool.name for tool in select_tools(server, listing)}
        all_tools = select_tools(replace(server, tools=ALL), listing)
        names = tool_names((name, tool.name) for tool in all_tools)
        return [
            ToolRow(
                name=names[name, tool.name],
                tool=tool.name,
                offered=tool.name in offered,
                read_only=tool.read_only,
                finding=tool.finding,
                description=tool.description.partition("\n")[0],
            )
            for tool in all_tools
        ]

    async def add(
        self,
        name: str,
        settings: McpServerSettings,
        *,
        screen: BrowserScreen | None = None,
        secrets: Collection[str] = (),
    ) -> ToolListing:
        """Connect to the server, logging in if it requires that, and then add it to the settings.
        `secrets` names further variables and headers to store as secrets."""
        if not re.fullmatch(_NAME, name):
            raise UsageError(
                f"{name!r} is not a valid server name; use at most 32 letters, digits, '-' and '_'."
            )
        if name in self._run.settings.mcp_servers:
            raise UsageError(f"{name} already exists; remove it first: `hermes mcp remove {name}`.")
        server = require_valid(server_from_settings(name, settings))
        if server.auth == "oauth" and screen is not None:
            await self._log_in(server, screen)
        try:
            listing = await self._connect(server)
        except NeedsLogin:
            if screen is None or not server.url or server.auth or server.headers:
                raise
            settings = replace(settings, auth="oauth")
            await self._log_in(server_from_settings(name, settings), screen)
            listing = await self._connect(server_from_settings(name, settings))
        # Secrets go to `.env`; the settings refer to them.
        stored: JsonObject = plain(settings)
        for part in ("env", "headers", "oauth"):
            for key, value in dict(stored.get(part, {})).items():
                if key in secrets or _is_secret(part, key, value):
                    variable = re.sub(r"[^A-Z0-9]", "_", f"MCP_{name}_{key}".upper())
                    set_from_text(self._run.home, variable, value)
                    stored[part][key] = f"${{{variable}}}"
        written = {key: value for key, value in stored.items() if value != {}}
        write_settings(self._run.home, {("mcp_servers", name): written})
        return listing

    def remove(self, name: str) -> None:
        find_server(self._run, name)
        last = len(self._run.settings.mcp_servers) == 1
        path = ("mcp_servers",) if last else ("mcp_servers", name)
        write_settings(self._run.home, {path: REMOVED})
        self._listings.drop(name)
        self._tokens(name).drop()

    def enable(self, name: str, enabled: bool) -> None:
        find_server(self._run, name)
        change = REMOVED if enabled else False
        write_settings(self._run.home, {("mcp_servers", name, "enabled"): change})

    def choose(self, name: str, include: Sequence[str], exclude: Sequence[str]) -> None:
        """Store which tools are offered; empty lists select all."""
        find_server(self._run, name)
        path = ("mcp_servers", name, "tools")
        write_settings(
            self._run.home,
            {
                (*path, "include"): list(include) or REMOVED,
                (*path, "exclude"): list(exclude) or REMOVED,
            },
        )

    async def test(self, name: str) -> ServerTrial:
        """Open a new connection and count what the server offers; raise ServerFault."""
        server = find_server(self._run, name)
        require_valid(server)
        clock = self._run.world.clock
        servers = configured_pool(self._run, extra=(server,))
        try:
            started = clock.monotonic()
            link = servers.link(name)
            listing = await link.listing()
            seconds = clock.monotonic() - started
            resources = await link.call(lambda c: c.resources()) if listing.resources else []
            prompts = await link.call(lambda c: c.prompts()) if listing.prompts else []
        finally:
            await servers.close()
        return ServerTrial(
            name=name,
            milliseconds=round(seconds * 1000),
            tools=len(listing.tools),
            resources=len(resources),
            prompts=len(prompts),
            title=listing.title,
            protocol=listing.protocol,
            unset=unset_variables(self._expand(server)),
        )

    async def log_in(self, name: str, screen: BrowserScreen) -> None:
        server = find_server(self._run, name)
        if server.auth != "oauth":
            raise UsageError(
                f"{name} has no login; if it needs one, set mcp_servers.{name}.auth to oauth."
            )
        await self._log_in(server, screen)
        await self._connect(server)

    def log_out(self, name: str) -> bool:
        find_server(self._run, name)
        return self._tokens(name).drop()

    async def _connect(self, server: McpServer) -> ToolListing:
        servers = configured_pool(self._run, extra=(server,))
        try:
            return await servers.link(server.name).listing()
        finally:
            await servers.close()

    async def _log_in(self, server: McpServer, screen: BrowserScreen) -> None:
        if find_spec("mcp") is None:
            raise MissingLibrary
        expanded, store = self._expand(server), self._tokens(server.name)
        clock = self._run.world.clock
        if server.uses_client_credentials:
            from hermes.mcp.oauth.bearer import machine_token

            async with store.lock():
                await machine_token(expanded, store, clock)
            return
        from hermes.mcp.oauth.login import log_in

        await log_in(expanded, store, screen, clock)

    def _expand(self, server: McpServer) -> McpServer:
        return expand_server(server, self._run.env, home=self._run.user_home, folder="")

    def _tokens(self, name: str) -> OAuthStore:
        return OAuthStore(self._run.home.root / "mcp-tokens", name)


def _is_secret(part: str, key: str, value: str) -> bool:
    if not value or "${" in value:
        return False
    return {"headers": True, "oauth": key == "client_secret"}.get(part, is_secret_name(key))


def is_server(settings: Settings, name: str) -> bool:
    """Return whether the name denotes a server or one of its tools."""
    server, colon, _ = name.partition(":")
    if not colon and not name.startswith(TOOLSET_PREFIX):
        return False
    return (server if colon else name.removeprefix(TOOLSET_PREFIX)) in settings.mcp_servers


def server_toolsets(
    settings: Settings, home: Home
) -> list[tuple[str, tuple[str, ...], bool, bool]]:
    """List each toolset with its tools as last seen, and whether it is fully, partially or not
    enabled."""
    toolsets = []
    listings = ListingCache(home.cache / "mcp")
    for name, server_settings in sorted(settings.mcp_servers.items()):
        server = server_from_settings(name, server_settings)
        listing = listings.get(server)
        tools = tuple(tool.name for tool in select_tools(server, listing)) if listing else ()
        toolset = f"{TOOLSET_PREFIX}{name}"
        on = server_settings.enabled and toolset not in settings.agent.disabled_toolsets
        toolsets.append((toolset, tools, on, on and server_settings.tools != ALL))
    return toolsets


def switch_changes(
    settings: Settings, names: Sequence[str], *, on: bool
) -> dict[KeyPath, JsonValue]:
    """Return the settings that enable or disable these servers or single tools."""
    changes: dict[KeyPath, JsonValue] = {}
    off = list(settings.agent.disabled_toolsets)
    for name in names:
        server, colon, tool = name.partition(":")
        if colon:
            changes |= _one_tool(server, settings.mcp_servers[server], tool, on=on)
            continue
        server = name.removeprefix(TOOLSET_PREFIX)
        if settings.mcp_servers[server].enabled != on:
            changes["mcp_servers", server, "enabled"] = REMOVED if on else False
        off = [each for each in off if each != name]
    if tuple(off) != settings.agent.disabled_toolsets:
        changes["agent", "disabled_toolsets"] = list(off)
    return changes


def _one_tool(
    server: str, settings: McpServerSettings, tool: str, *, on: bool
) -> dict[KeyPath, JsonValue]:
    if not tool:
        raise UsageError(f"Name the tool too: {server}:TOOL.")
    path = ("mcp_servers", server, "tools")
    if settings.tools.include:
        include = [each for each in settings.tools.include if each != tool]
        if not on and len(include) == len(settings.tools.include):
            raise NotFound(f"{server} does not offer the tool {tool!r}; see `hermes mcp tools`.")
        include += [tool] if on else []
        if not include:
            raise UsageError(f"{tool} is the last tool of {server}; use `hermes mcp disable`.")
        return {(*path, "include"): list(include)}
    exclude = [each for each in settings.tools.exclude if each != tool]
    exclude += [] if on else [tool]
    if tuple(exclude) == settings.tools.exclude:
        return {}
    return {(*path, "exclude"): list(exclude) or REMOVED}
