"""Commands that plugins bring, for the chat and for the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.core.errors import UsageError

if TYPE_CHECKING:
    from hermes.plugins.protocol import PluginCaller
    from hermes.plugins.run_plugins import RunPlugins


async def command_of_plugin(
    plugged: RunPlugins, name: str, argument: str, session_id: str
) -> str | None:
    """What a plugin's slash command says; None when no plugin has it."""
    if not plugged.enabled:
        return None
    from hermes.plugins.protocol import PluginCaller

    await plugged.offer()
    for key, surface in plugged.surfaces():
        if any(each.name == name for each in surface.commands):
            said = await _call(plugged, key, "command", name, argument, PluginCaller(session_id))
            return "" if said is None else str(said)
    return None


async def commands_of_plugins(plugged: RunPlugins) -> dict[str, str]:
    """What their slash commands do, by name."""
    if not plugged.enabled:
        return {}
    await plugged.offer()
    return {
        offer.name: f"{offer.args_hint} {offer.description}".strip()
        for _, surface in plugged.surfaces()
        for offer in surface.commands
    }


def has_cli_command(plugged: RunPlugins, name: str) -> bool:
    """By the manifests alone."""
    return plugged.enabled and any(
        each.found.manifest and name in each.found.manifest.provides_commands
        for each in plugged.plugins.usable()
    )


async def cli_command(plugged: RunPlugins, name: str, words: list[str]) -> tuple[int, str]:
    """What `hermes NAME WORDS…` of a plugin prints, and its exit code."""
    from hermes.plugins.protocol import NO_CALLER

    await plugged.offer()
    for key, surface in plugged.surfaces():
        if any(each.name == name for each in surface.cli):
            said = await _call(plugged, key, "cli", name, words, NO_CALLER)
            return int(said["code"]), str(said["output"])
    raise UsageError(f"No plugin has the command {name}; `hermes plugins list` says why.")


async def _call(
    plugged: RunPlugins, key: str, kind: Any, name: str, given: Any, caller: PluginCaller
) -> Any:
    plugins = plugged.plugins
    running = await plugins.ready(key)
    return await running.call(kind, name, given, seconds=plugins.rules.tool_timeout, caller=caller)
