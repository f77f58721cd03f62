"""Foreign servers among the toolsets: each is one, and `server:tool` is one of its tools."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.codec.values import JsonValue
from hermes.config.extension_settings import McpServerSettings, McpToolSettings
from hermes.config.home import Home
from hermes.config.migrations import REMOVED
from hermes.config.schema import KeyPath
from hermes.config.settings import Settings
from hermes.core.errors import NotFound, UsageError
from hermes.mcp.listing import ListingCache, select_tools
from hermes.mcp.run_servers import server_of

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
