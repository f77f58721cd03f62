"""`/reload-mcp`, `/plugins`, and the slash commands of plugins."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.commands.formatting import one_line, sanitize
from hermes.commands.registry import (
    CommandContext,
    DynamicCommands,
    Outcome,
    ShowText,
    SlashCommand,
    Suggestion,
)
from hermes.plugins.commands import list_slash_commands, run_slash_command


async def _reload(here: CommandContext, _argument: str) -> Outcome:
    return ShowText(text=await here.app.mcp.reload())


MCP_COMMANDS = (
    SlashCommand(
        "reload-mcp", "Reload the configured MCP servers.", _reload,
        category="tools",
    ),
)  # fmt: skip


NONE = "No plugins are installed; create one with `hermes plugins new NAME`."


async def _list(here: CommandContext, _argument: str) -> Outcome:
    await here.app.plugins.offer()
    lines = [
        one_line(
            f"{state.found.key:<24} {state.status:<12} {state.protection} {state.fault}".rstrip(),
            200,
        )
        for state in here.app.plugins.plugins.states
    ]
    return ShowText(text="\n".join(lines) or NONE)


class PluginCommands:
    """`then` handles commands that no plugin has."""

    def __init__(self, then: DynamicCommands) -> None:
        self._then = then

    async def run(self, here: CommandContext, line: str) -> Outcome | None:
        name, _, argument = line.removeprefix("/").partition(" ")
        plain = name.lower().replace("_", "-")
        said = await run_slash_command(here.app.plugins, plain, argument.strip(), here.session.id)
        if said is None:
            return await self._then.run(here, line)
        return ShowText(text=here.app.run.redactor.text(sanitize(said)))

    async def names(self, here: CommandContext) -> Sequence[Suggestion]:
        own = [
            Suggestion(text=name, words=one_line(words, 60))
            for name, words in (await list_slash_commands(here.app.plugins)).items()
        ]
        return (*own, *await self._then.names(here))


PLUGIN_COMMANDS = (
    SlashCommand(
        "plugins", "List plugins and their state.", _list,
        category="tools",
    ),
)  # fmt: skip
