"""Lists the toolsets of sessions, globally or per surface, and enables or disables them."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.codec.values import JsonValue, Value
from hermes.config.home import Home
from hermes.config.schema import KeyPath
from hermes.config.settings import Settings
from hermes.core.errors import NotFound, UsageError
from hermes.tools.toolbox import (
    DEFAULT_TOOLSET,
    resolve_toolsets,
    toolsets_by_name,
    wanted_names,
)

# Surfaces on which sessions start.
PLATFORMS = ("cli", "acp", "api")


class ToolsetState(Value):
    """Whether a toolset is available."""

    name: str
    tools: tuple[str, ...]
    # All its tools are available.
    enabled: bool = False
    # Only some of its tools are available.
    partly: bool = False


def toolset_states(
    settings: Settings, platform: str = "", *, home: Home | None = None
) -> tuple[ToolsetState, ...]:
    """Return the state of every toolset. With a home, MCP servers are included."""
    offered = {*wanted_names(settings, platform=platform)}
    states = []
    for name in toolsets_by_name():
        if name != DEFAULT_TOOLSET:
            tools = resolve_toolsets((name,))
            available = offered & {*tools}
            whole = len(available) == len(tools)
            partly = bool(available) and not whole
            states.append(ToolsetState(name=name, tools=tools, enabled=whole, partly=partly))
    if home is not None and settings.mcp_servers:
        from hermes.mcp import admin as mcp_admin

        states += [
            ToolsetState(name=name, tools=tools, enabled=on and not partly, partly=partly)
            for name, tools, on, partly in mcp_admin.server_toolsets(settings, home)
        ]
    return tuple(states)


def switch(home: Home, name: str, *, on: bool) -> None:
    """Change the saved settings, for sessions that start from now on. Raises NotFound."""
    # Loaded only for changes.
    from hermes.config.edit import write_settings
    from hermes.config.load import load

    if found := changes(load(home, env={}).settings, (name,), on=on):
        write_settings(home, found)


def changes(
    settings: Settings, names: Sequence[str], *, on: bool, platform: str = ""
) -> dict[KeyPath, JsonValue]:
    """Return the settings to write so that these toolsets are enabled or disabled. Raises
    NotFound."""
    if settings.mcp_servers:
        from hermes.mcp.admin import is_server, switch_changes

        if servers := [name for name in names if is_server(settings, name)]:
            if platform:
                raise UsageError(
                    "MCP servers are enabled for all platforms at once; omit --platform."
                )
            others = [name for name in names if name not in servers]
            return switch_changes(settings, servers, on=on) | changes(settings, others, on=on)
    for name in names:
        if name not in toolsets_by_name():
            # Loaded only for a name that is not found.
            import difflib

            near = tuple(difflib.get_close_matches(name, toolsets_by_name(), n=3, cutoff=0.5))
            hint = f"did you mean {near[0]}?" if near else "`hermes tools list` lists them."
            raise NotFound(f"There is no toolset {name!r}; {hint}", near=near)
    if platform:
        states = toolset_states(settings, platform)
        now = {each.name for each in states if each.enabled or each.partly}
        wanted = now | {*names} if on else now - {*names}
        return {("platform_toolsets", platform): sorted(wanted)} if wanted != now else {}
    toolsets, off = list(settings.toolsets), list(settings.agent.disabled_toolsets)
    for name in names:
        off = [each for each in off if each != name]
        if on:
            if not {*resolve_toolsets((name,))} <= {*resolve_toolsets(toolsets)}:
                toolsets.append(name)
        else:
            toolsets = [each for each in toolsets if each != name]
            if {*resolve_toolsets((name,))} & {*resolve_toolsets(toolsets)}:
                off.append(name)
    found: dict[KeyPath, JsonValue] = {}
    if tuple(toolsets) != settings.toolsets:
        found["toolsets",] = list(toolsets)
    if tuple(off) != settings.agent.disabled_toolsets:
        found["agent", "disabled_toolsets"] = list(off)
    return found
