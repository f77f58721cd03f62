"""Slash commands about foreign servers."""

from __future__ import annotations

from hermes.commands.registry import Here, Outcome, Shown, SlashCommand


async def _reload(here: Here, _argument: str) -> Outcome:
    return Shown(text=await here.app.foreign.reload())


COMMANDS = (
    SlashCommand(
        "reload-mcp", "Follow the settings of foreign servers as they are now.", _reload,
        category="tools",
    ),
)  # fmt: skip
