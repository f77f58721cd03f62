"""Slash commands and CLI commands of plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.core.errors import UsageError

if TYPE_CHECKING:
    from hermes.plugins.protocol import PluginCaller
    from hermes.plugins.run_plugins import RunPlugins


async def run_slash_command(
    run_plugins: RunPlugins, name: str, argument: str, session_id: str
) -> str | None:
    """Returns the output of a plugin's slash command; None when no plugin has it."""
    if not run_plugins.enabled:
        return None
    from hermes.plugins.protocol import PluginCaller

    await run_plugins.offer()
    for key, surface in run_plugins.surfaces():
        if any(each.name == name for each in surface.commands):
            result = await _call(
                run_plugins, key, "command", name, argument, PluginCaller(session_id)
            )
            return "" if result is None else str(result)
    return None


async def list_slash_commands(run_plugins: RunPlugins) -> dict[str, str]:
    """Returns the descriptions of slash commands by name."""
    if not run_plugins.enabled:
        return {}
    await run_plugins.offer()
    return {
        offer.name: f"{offer.args_hint} {offer.description}".strip()
        for _, surface in run_plugins.surfaces()
        for offer in surface.commands
    }


def has_cli_command(run_plugins: RunPlugins, name: str) -> bool:
    """Checks the manifests only."""
    return run_plugins.enabled and any(
        each.found.manifest and name in each.found.manifest.provides_commands
        for each in run_plugins.plugins.usable()
    )


async def run_cli_command(run_plugins: RunPlugins, name: str, args: list[str]) -> tuple[int, str]:
    """Runs `hermes NAME ARGS…` of a plugin; returns its exit code and output."""
    from hermes.plugins.protocol import NO_CALLER

    await run_plugins.offer()
    for key, surface in run_plugins.surfaces():
        if any(each.name == name for each in surface.cli):
            result = await _call(run_plugins, key, "cli", name, args, NO_CALLER)
            return int(result["code"]), str(result["output"])
    raise UsageError(f"No plugin has the command {name}; `hermes plugins list` shows why.")


async def _call(
    run_plugins: RunPlugins, key: str, kind: Any, name: str, argument: Any, caller: PluginCaller
) -> Any:
    plugins = run_plugins.plugins
    running = await plugins.ready(key)
    return await running.call(
        kind, name, argument, seconds=plugins.rules.tool_timeout, caller=caller
    )
