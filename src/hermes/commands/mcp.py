"""`/reload-mcp`: reconnects MCP servers."""

from __future__ import annotations

from hermes.commands.registry import Here, Outcome, Shown, SlashCommand


async def _reload(here: Here, _argument: str) -> Outcome:
    return Shown(text=await here.app.foreign.reload())


MCP_COMMANDS = (
    SlashCommand(
        "reload-mcp", "Reload the configured MCP servers.", _reload,
        category="tools",
    ),
)  # fmt: skip
