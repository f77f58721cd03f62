"""`/reload-mcp`, `/plugins`, the commands of plugins, and those that `quick_commands` defines."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hermes.commands.formatting import one_line, sanitize
from hermes.commands.registry import (
    CommandContext,
    Outcome,
    ShowText,
    SlashCommand,
    StartWork,
    Suggestion,
    split_line,
)
from hermes.workspaces.user_commands import run_user_command


async def _reload(here: CommandContext, _argument: str) -> str:
    return await here.app.mcp.reload(requery=True)


NONE = "No plugins are installed; `hermes plugins new NAME` creates one."


async def _list(here: CommandContext, _argument: str) -> str:
    await here.app.plugins.offer()
    lines = [
        one_line(
            f"{state.plugin.key:<24} {state.status:<12} {state.protection} {state.fault}".rstrip(),
            200,
        )
        for state in here.app.plugins.plugins.states
    ]
    return "\n".join(lines) or NONE


class PluginCommands:
    """The commands that plugins declare."""

    async def run(self, here: CommandContext, line: str) -> Outcome | None:
        name, argument = split_line(line)
        text = await here.app.plugins.run_slash_command(name, argument, here.session.id)
        if text is None:
            return None
        return ShowText(text=here.app.context.redactor.text(sanitize(text)))

    async def names(self, here: CommandContext) -> Sequence[Suggestion]:
        return [
            Suggestion(text=name, description=one_line(description, 60))
            for name, description in (await here.app.plugins.list_slash_commands()).items()
        ]


EXTENSION_COMMANDS = (
    SlashCommand("reload-mcp", "Connect to the configured MCP servers again.", _reload),
    SlashCommand("plugins", "List plugins and their state.", _list),
)

QUICK_SECONDS = 30.0


class QuickCommands:
    """The commands that the user defines."""

    async def run(self, here: CommandContext, line: str) -> Outcome | None:
        name, argument = split_line(line)
        quick = here.app.context.settings.quick_commands.get(name)
        if quick is None:
            return None
        if quick.type == "alias":
            target = f"/{quick.target.removeprefix('/')} {argument}".strip()
            wanted = target[1:].partition(" ")[0]
            if wanted in here.app.context.settings.quick_commands:
                # An alias of an alias could loop.
                text = f"/{wanted} is itself a quick command; an alias must name a built-in one."
                return ShowText(text=text)
            return await here.registry.run(target, here)
        if not quick.command:
            return ShowText(text=f"quick_commands.{name}.command is empty; set the command to run.")
        return shell_command(here, quick.command, seconds=QUICK_SECONDS)

    async def names(self, here: CommandContext) -> Sequence[Suggestion]:
        return [
            Suggestion(text=name, description=one_line(quick.command or quick.target, 60))
            for name, quick in here.app.context.settings.quick_commands.items()
        ]


def shell_command(here: CommandContext, script: str, *, seconds: float) -> StartWork:
    """A shell command of the user, run in the background."""
    app, session, stop = here.app, here.session, asyncio.Event()

    async def work() -> str:
        result = await run_user_command(app.context, session, script, seconds=seconds, stop=stop)
        if result.refused:
            return sanitize(result.refused)
        output = sanitize(result.output).rstrip("\n")
        ending = f"[{result.ending}]" if result.ending else ""
        return "\n".join(filter(None, (f"$ {one_line(script, 80)}", output, ending)))

    return StartWork(name=f"$ {one_line(script, 60)}", work=work, stop=stop)
