"""User-defined slash commands from `quick_commands`, which take precedence over skills."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hermes.commands.formatting import one_line, sanitize
from hermes.commands.registry import (
    CommandContext,
    DynamicCommands,
    Outcome,
    ShowText,
    StartWork,
    Suggestion,
)
from hermes.workspaces.user_commands import Ran, run_by_hand

QUICK_SECONDS = 30.0


class QuickCommands:
    """`then` handles commands that are not quick commands."""

    def __init__(self, then: DynamicCommands) -> None:
        self._then = then

    async def run(self, here: CommandContext, line: str) -> Outcome | None:
        name, _, argument = line.removeprefix("/").partition(" ")
        quick = here.app.run.settings.quick_commands.get(name.lower().replace("_", "-"))
        if quick is None:
            return await self._then.run(here, line)
        if quick.type == "alias":
            return await self._alias(here, quick.target, argument)
        if not quick.command:
            return ShowText(text=f"quick_commands.{name} has no command to run.")
        return shell_command(here, quick.command, seconds=QUICK_SECONDS)

    async def names(self, here: CommandContext) -> Sequence[Suggestion]:
        own = [
            Suggestion(text=name, words=one_line(quick.command or quick.target, 60))
            for name, quick in here.app.run.settings.quick_commands.items()
        ]
        return (*own, *await self._then.names(here))

    async def _alias(self, here: CommandContext, target: str, argument: str) -> Outcome:
        line = f"/{target.removeprefix('/')} {argument}".strip()
        name = line[1:].partition(" ")[0]
        if name in here.app.run.settings.quick_commands:
            # An alias of an alias could loop.
            return ShowText(text=f"/{name} is not a built-in command; an alias must name one.")
        return await here.registry.run(line, here)


def shell_command(here: CommandContext, script: str, *, seconds: float) -> StartWork:
    """A shell command of the user, run in the background."""
    app, session, stop = here.app, here.session, asyncio.Event()

    async def work() -> str:
        ran = await run_by_hand(app.run, session, script, seconds=seconds, stop=stop)
        return format_result(ran, script)

    return StartWork(name=f"$ {one_line(script, 60)}", work=work, stop=stop)


def format_result(ran: Ran, script: str) -> str:
    if ran.refused:
        return sanitize(ran.refused)
    output = sanitize(ran.output).rstrip("\n")
    ending = f"[{ran.ending}]" if ran.ending else ""
    return "\n".join(filter(None, (f"$ {one_line(script, 80)}", output, ending)))
