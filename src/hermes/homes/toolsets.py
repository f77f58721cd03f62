"""Which toolsets sessions are offered, everywhere or on one surface, and how that is changed."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.codec.values import JsonValue, Value
from hermes.config.home import Home
from hermes.config.schema import KeyPath
from hermes.config.settings import Settings
from hermes.core.errors import NotFound, UsageError
from hermes.tools.toolbox import resolve_toolsets, toolsets_by_name, wanted_names

# The surfaces that sessions begin on.
PLATFORMS = ("cli", "acp", "api")


class ToolsetState(Value):
    """`enabled` when all its tools are offered; `partly` when only some are."""

    name: str
    tools: tuple[str, ...]
    enabled: bool = False
    partly: bool = False


def toolset_states(
    settings: Settings, platform: str = "", *, home: Home | None = None
) -> tuple[ToolsetState, ...]:
    """With a home, foreign servers are among them."""
    offered = {*wanted_names(settings, platform=platform)}
    own = tuple(_state(name, offered) for name in _expand())
    if home is None or not settings.mcp_servers:
        return own
    from hermes.mcp import admin as mcp_admin

    return own + tuple(
        ToolsetState(name=name, tools=tools, enabled=on and not partly, partly=partly)
        for name, tools, on, partly in mcp_admin.server_toolsets(settings, home)
    )


def check(names: Sequence[str]) -> None:
    """UsageError for a toolset that does not exist."""
    resolve_toolsets(names)


def _state(name: str, offered: set[str]) -> ToolsetState:
    tools = resolve_toolsets((name,))
    held = offered & {*tools}
    whole = len(held) == len(tools)
    return ToolsetState(name=name, tools=tools, enabled=whole, partly=bool(held) and not whole)


def _expand() -> tuple[str, ...]:
    """Those that are not only made of others."""
    return tuple(name for name, held in toolsets_by_name().items() if held.tools)


def switch(home: Home, name: str, *, on: bool) -> None:
    """In the settings as they are now, for sessions that start from now on; NotFound."""
    # Looking is common, changing is not.
    from hermes.config.edit import write_settings
    from hermes.config.load import load

    if found := changes(load(home, env={}).settings, (name,), on=on):
        write_settings(home, found)


def changes(
    settings: Settings, names: Sequence[str], *, on: bool, platform: str = ""
) -> dict[KeyPath, JsonValue]:
    """What to write so that these toolsets are offered, or not any more; NotFound."""
    if settings.mcp_servers:
        from hermes.mcp.admin import is_server, switch_changes

        if servers := [name for name in names if is_server(settings, name)]:
            if platform:
                raise UsageError("Servers are switched everywhere at once; leave out --platform.")
            others = [name for name in names if name not in servers]
            return switch_changes(settings, servers, on=on) | changes(settings, others, on=on)
    for name in names:
        if name not in toolsets_by_name():
            # Only a slip needs the comparison of words.
            import difflib

            near = tuple(difflib.get_close_matches(name, toolsets_by_name(), n=3, cutoff=0.5))
            hint = f"did you mean {near[0]}?" if near else "`hermes tools list` shows them."
            raise NotFound(f"There is no toolset {name!r}; {hint}", near=near)
    if platform:
        return _for_platform(settings, names, on=on, platform=platform)
    toolsets, off = list(settings.toolsets), list(settings.agent.disabled_toolsets)
    for name in names:
        off = [each for each in off if each != name]
        if on:
            if not _covers(toolsets, name):
                toolsets.append(name)
        else:
            toolsets = [each for each in toolsets if each != name]
            if _touches(toolsets, name):
                off.append(name)
    found: dict[KeyPath, JsonValue] = {}
    if tuple(toolsets) != settings.toolsets:
        found["toolsets",] = list(toolsets)
    if tuple(off) != settings.agent.disabled_toolsets:
        found["agent", "disabled_toolsets"] = list(off)
    return found


def _for_platform(
    settings: Settings, names: Sequence[str], *, on: bool, platform: str
) -> dict[KeyPath, JsonValue]:
    now = [each.name for each in toolset_states(settings, platform) if each.enabled or each.partly]
    changed = {*now} | {*names} if on else {*now} - {*names}
    return {("platform_toolsets", platform): sorted(changed)} if changed != {*now} else {}


def _covers(toolsets: Sequence[str], name: str) -> bool:
    return {*resolve_toolsets((name,))} <= {*resolve_toolsets(toolsets)}


def _touches(toolsets: Sequence[str], name: str) -> bool:
    return bool({*resolve_toolsets((name,))} & {*resolve_toolsets(toolsets)})
