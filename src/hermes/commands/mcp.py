"""`/reload-mcp`: reconnects MCP servers."""

from __future__ import annotations

from hermes.commands.registry import CommandContext, Outcome, ShowText, SlashCommand


async def _reload(here: CommandContext, _argument: str) -> Outcome:
    return ShowText(text=await here.app.mcp.reload())


MCP_COMMANDS = (
    SlashCommand(
        "reload-mcp", "Reload the configured MCP servers.", _reload,
        category="tools",
    ),
)  # fmt: skip
