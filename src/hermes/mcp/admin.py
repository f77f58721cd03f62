"""Administration of MCP servers: add, test, log in, enable, choose tools."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
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
from hermes.mcp.oauth.store import TokenStore
from hermes.mcp.run_servers import one_server, server_of, servers_of
from hermes.mcp.server import (
    McpServer,
    NeedsLogin,
    ToolSelection,
    expand_server,
    require_valid,
    unset_variables,
)

if TYPE_CHECKING:
    from hermes.mcp.oauth.login import LoginScreen

_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}"


class ServerRow(Value):
    """One server of the settings. `tools` is None when it was never seen."""

    name: str
    place: str
    enabled: bool
    auth: str = ""
    logged_in: bool = False
    tools: int | None = None
    fault: str = ""


class ToolRow(Value):
    """`name` is what sessions call it, `tool` what the server does."""

    name: str
    tool: str
    offered: bool
    read_only: bool = False
    finding: str = ""
    description: str = ""


class ServerTrial(Value):
    """How it went to meet a server."""

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
        return [self._row(name, own) for name, own in sorted(self._settings().items())]

    def tools(self, name: str) -> list[ToolRow]:
        """As last seen; none when it was never met."""
        server = one_server(self._run, name)
        listing = self._listings.get(server) or ToolListing()
        offered = {tool.name for tool in select_tools(server, listing)}
        every = select_tools(_unfiltered(server), listing)
        names = tool_names((name, tool.name) for tool in every)
        return [
            ToolRow(
                name=names[name, tool.name],
                tool=tool.name,
                offered=tool.name in offered,
                read_only=tool.read_only,
                finding=tool.finding,
                description=tool.description.partition("\n")[0],
            )
            for tool in every
        ]

    async def add(
        self,
        name: str,
        own: McpServerSettings,
        *,
        screen: LoginScreen | None = None,
        secrets: Collection[str] = (),
    ) -> ToolListing:
        """Meet the server first and write it down when that has worked. One that turns out to want
        a login is logged in to. `secrets` are variables and headers that do not look so."""
        if not re.fullmatch(_NAME, name):
            raise UsageError(
                f"{name!r} cannot name a server; use letters, digits, '-' and '_', at most 32."
            )
        if name in self._settings():
            raise UsageError(f"{name} is there already; `hermes mcp remove {name}` first.")
        server = require_valid(server_of(name, own))
        if server.auth == "oauth" and screen is not None:
            await self._log_in(server, screen)
        try:
            listing, _ = await self._connect(server)
        except NeedsLogin:
            if screen is None or not server.url or server.auth or server.headers:
                raise
            own = replace(own, auth="oauth")
            await self._log_in(server_of(name, own), screen)
            listing, _ = await self._connect(server_of(name, own))
        self._write(name, own, secrets)
        return listing

    def remove(self, name: str) -> None:
        one_server(self._run, name)
        last = len(self._settings()) == 1
        path = ("mcp_servers",) if last else ("mcp_servers", name)
        write_settings(self._run.home, {path: REMOVED})
        self._listings.drop(name)
        self._tokens(name).drop()

    def enable(self, name: str, enabled: bool) -> None:
        one_server(self._run, name)
        change = REMOVED if enabled else False
        write_settings(self._run.home, {("mcp_servers", name, "enabled"): change})

    def choose(self, name: str, include: Sequence[str], exclude: Sequence[str]) -> None:
        """Nothing is written down where everything is taken."""
        one_server(self._run, name)
        path = ("mcp_servers", name, "tools")
        write_settings(
            self._run.home,
            {
                (*path, "include"): list(include) or REMOVED,
                (*path, "exclude"): list(exclude) or REMOVED,
            },
        )

    async def test(self, name: str) -> ServerTrial:
        """Connect anew and count what there is; ServerFault."""
        server = one_server(self._run, name)
        require_valid(server)
        clock = self._run.world.clock
        servers = servers_of(self._run, extra=(server,))
        try:
            begun = clock.monotonic()
            link = servers.link(name)
            listing = await link.listing()
            seconds = clock.monotonic() - begun
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

    async def log_in(self, name: str, screen: LoginScreen) -> None:
        server = one_server(self._run, name)
        if server.auth != "oauth":
            raise UsageError(
                f"{name} needs no login; set mcp_servers.{name}.auth to oauth if it does."
            )
        await self._log_in(server, screen)
        await self._connect(server)

    def log_out(self, name: str) -> bool:
        return self._tokens(one_server(self._run, name).name).drop()

    def _settings(self) -> Mapping[str, McpServerSettings]:
        return self._run.settings.mcp_servers

    def _row(self, name: str, own: McpServerSettings) -> ServerRow:
        server = server_of(name, own)
        listing = self._listings.get(server)
        return ServerRow(
            name=name,
            place=server.location,
            enabled=own.enabled,
            auth=own.auth,
            logged_in=server.uses_client_credentials
            or (own.auth == "oauth" and self._tokens(name).token() is not None),
            tools=len(select_tools(server, listing)) if listing else None,
            fault=server.fault(),
        )

    async def _connect(self, server: McpServer) -> tuple[ToolListing, float]:
        servers = servers_of(self._run, extra=(server,))
        clock = self._run.world.clock
        begun = clock.monotonic()
        try:
            listing = await servers.link(server.name).listing()
        finally:
            await servers.close()
        return listing, clock.monotonic() - begun

    async def _log_in(self, server: McpServer, screen: LoginScreen) -> None:
        from importlib.util import find_spec

        from hermes.mcp.server import MissingLibrary

        if find_spec("mcp") is None:
            raise MissingLibrary
        whole, store, clock = self._expand(server), self._tokens(server.name), self._run.world.clock
        if server.uses_client_credentials:
            from hermes.mcp.oauth.bearer import machine_token

            async with store.lock():
                await machine_token(whole, store, clock)
            return
        from hermes.mcp.oauth.login import log_in

        await log_in(whole, store, screen, clock)

    def _expand(self, server: McpServer) -> McpServer:
        return expand_server(server, self._run.env, home=self._run.user_home, folder="")

    def _tokens(self, name: str) -> TokenStore:
        return TokenStore(self._run.home.root / "mcp-tokens", name)

    def _write(self, name: str, own: McpServerSettings, secrets: Collection[str]) -> None:
        """Secrets go to `.env`, and the settings refer to them there."""
        told: JsonObject = plain(own)
        for part in ("env", "headers", "oauth"):
            for key, value in dict(told.get(part, {})).items():
                if key in secrets or _is_secret(part, key, value):
                    variable = _variable(name, key)
                    set_from_text(self._run.home, variable, value)
                    told[part][key] = f"${{{variable}}}"
        written = {key: value for key, value in told.items() if value != {}}
        write_settings(self._run.home, {("mcp_servers", name): written})


def _is_secret(part: str, key: str, value: str) -> bool:
    if not value or "${" in value:
        return False
    return {"headers": True, "oauth": key == "client_secret"}.get(part, is_secret_name(key))


def _variable(name: str, key: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", f"MCP_{name}_{key}".upper())


def _unfiltered(server: McpServer) -> McpServer:
    return replace(server, tools=ToolSelection())


BEGINNING = "mcp-"
ALL = McpToolSettings()


def is_server(settings: Settings, name: str) -> bool:
    """Whether the name means a server or one of its tools."""
    server, colon, _ = name.partition(":")
    if colon:
        return server in settings.mcp_servers
    return name.startswith(BEGINNING) and name.removeprefix(BEGINNING) in settings.mcp_servers


def server_toolsets(
    settings: Settings, home: Home
) -> list[tuple[str, tuple[str, ...], bool, bool]]:
    """By toolset: its tools as last seen, whether it is offered, and whether not whole."""
    found = []
    listings = ListingCache(home.cache / "mcp")
    for name, own in sorted(settings.mcp_servers.items()):
        server = server_of(name, own)
        listing = listings.get(server)
        tools = tuple(tool.name for tool in select_tools(server, listing)) if listing else ()
        toolset = f"{BEGINNING}{name}"
        on = own.enabled and toolset not in settings.agent.disabled_toolsets
        found.append((toolset, tools, on, on and own.tools != ALL))
    return found


def switch_changes(
    settings: Settings, names: Sequence[str], *, on: bool
) -> dict[KeyPath, JsonValue]:
    """What to write so that these servers or single tools are offered, or not any more."""
    found: dict[KeyPath, JsonValue] = {}
    off = list(settings.agent.disabled_toolsets)
    for name in names:
        server, colon, tool = name.partition(":")
        if colon:
            found |= _one_tool(server, settings.mcp_servers[server], tool, on=on)
            continue
        own = settings.mcp_servers[name.removeprefix(BEGINNING)]
        if own.enabled != on:
            key = ("mcp_servers", name.removeprefix(BEGINNING), "enabled")
            found[key] = REMOVED if on else False
        off = [each for each in off if each != name]
    if tuple(off) != settings.agent.disabled_toolsets:
        found["agent", "disabled_toolsets"] = list(off)
    return found


def _one_tool(
    server: str, own: McpServerSettings, tool: str, *, on: bool
) -> dict[KeyPath, JsonValue]:
    if not tool:
        raise UsageError(f"Name the tool too: {server}:TOOL.")
    path = ("mcp_servers", server, "tools")
    if own.tools.include:
        wanted = [each for each in own.tools.include if each != tool]
        if not on and len(wanted) == len(own.tools.include):
            raise NotFound(f"{server} is not asked for a tool {tool!r}; see `hermes mcp tools`.")
        wanted += [tool] if on else []
        if not wanted:
            raise UsageError(f"That is the last tool of {server}; use `hermes mcp disable`.")
        return {(*path, "include"): list(wanted)}
    without = [each for each in own.tools.exclude if each != tool]
    without += [] if on else [tool]
    if tuple(without) == own.tools.exclude:
        return {}
    return {(*path, "exclude"): list(without) or REMOVED}
