"""Commands that plugins bring, for the chat and for the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.core.errors import UsageError

if TYPE_CHECKING:
    from hermes.app.build import App
    from hermes.plugins.serving import Caller


async def command_of_plugin(app: App, name: str, argument: str, session_id: str) -> str | None:
    """What a plugin's slash command says; None when no plugin has it."""
    if not app.plugged.wanted:
        return None
    from hermes.plugins.serving import Caller

    await app.plugged.offer()
    for key, surface in app.plugged.surfaces():
        if any(each.name == name for each in surface.commands):
            said = await _called(app, key, "command", name, argument, Caller(session_id))
            return "" if said is None else str(said)
    return None


async def commands_of_plugins(app: App) -> dict[str, str]:
    """What their slash commands do, by name."""
    if not app.plugged.wanted:
        return {}
    await app.plugged.offer()
    return {
        offer.name: f"{offer.args_hint} {offer.description}".strip()
        for _, surface in app.plugged.surfaces()
        for offer in surface.commands
    }


def has_cli_command(app: App, name: str) -> bool:
    """By the manifests alone."""
    return app.plugged.wanted and any(
        each.found.manifest and name in each.found.manifest.provides_commands
        for each in app.plugged.plugins.usable()
    )


async def cli_command(app: App, name: str, words: list[str]) -> tuple[int, str]:
    """What `hermes NAME WORDS…` of a plugin prints, and its exit code."""
    from hermes.plugins.serving import NOBODY

    await app.plugged.offer()
    for key, surface in app.plugged.surfaces():
        if any(each.name == name for each in surface.cli):
            said = await _called(app, key, "cli", name, words, NOBODY)
            return int(said["code"]), str(said["output"])
    raise UsageError(f"No plugin has the command {name}; `hermes plugins list` says why.")


async def _called(app: App, key: str, kind: Any, name: str, given: Any, caller: Caller) -> Any:
    plugins = app.plugged.plugins
    running = await plugins.ready(key)
    return await running.call(kind, name, given, seconds=plugins.rules.tool_timeout, caller=caller)
