"""The command for goals that a session pursues over several turns."""

from __future__ import annotations

import re

from hermes.codec.values import replace
from hermes.commands.registry import CommandContext, SlashCommand
from hermes.core.commands import Interrupt, Say, SetGoal
from hermes.core.errors import UsageError
from hermes.core.events import GoalChanged
from hermes.delegation.goals import describe

NO_GOAL = "There is no goal; /goal TEXT sets one."
_OPTION = re.compile(r"\s*--(check|turns|usd)[ =](\"[^\"]*\"|'[^']*'|\S+)")


async def goal(here: CommandContext, argument: str) -> str:
    current = here.session.transcript.goal
    if argument in ("", "status"):
        return describe(current) if current else NO_GOAL
    if argument in ("stop", "resume"):
        if current is None:
            return NO_GOAL
        return await (_stop(here, current) if argument == "stop" else _resume(here, current))
    wanted = await _parse(here, argument)
    say = Say(text=wanted.goal, key=f"{wanted.id}:1")
    await here.session.send(SetGoal(goal=wanted, say=say))
    limit = f", ${wanted.max_usd:.2f}" if wanted.max_usd else ""
    how = f"`{wanted.check}` succeeds" if wanted.check else "a model finds that it is reached"
    return f"The session continues until {how} (at most {wanted.max_turns} turns{limit})."


async def _stop(here: CommandContext, current: GoalChanged) -> str:
    changed = replace(current, state="stopped", why="You stopped it.")
    await here.session.send(SetGoal(goal=changed))
    if here.session.busy:
        await here.session.send(Interrupt())
    return describe(changed)


async def _resume(here: CommandContext, current: GoalChanged) -> str:
    if current.state == "active":
        return describe(current)
    if here.session.busy:
        return "A turn is running; wait for its end."
    number = here.app.context.world.new_id("goal")
    changed = replace(current, id=number, state="active", why="", turns=1)
    spent = await here.app.archive.spent_usd(here.session.id)
    changed = replace(changed, usd_before=spent)
    say = Say(text=f"Continue with the goal: {current.goal}", key=f"{number}:1")
    await here.session.send(SetGoal(goal=changed, say=say))
    return describe(changed)


async def _parse(here: CommandContext, argument: str) -> GoalChanged:
    """Read `TEXT [--check COMMAND] [--turns N] [--usd AMOUNT]`."""
    given = {name: value.strip("\"'") for name, value in _OPTION.findall(argument)}
    text = _OPTION.sub("", argument).strip()
    settings = here.app.context.settings.goals
    try:
        turns = int(given.get("turns", settings.max_turns))
        usd = float(given.get("usd", settings.max_usd))
    except ValueError:
        turns = 0
        usd = 0.0
    if not text or turns < 1 or usd < 0:
        raise UsageError(
            'Write /goal TEXT [--check "COMMAND"] [--turns N] [--usd AMOUNT], status, stop or '
            "resume."
        )
    return GoalChanged(
        id=here.app.context.world.new_id("goal"),
        goal=text,
        check=given.get("check", ""),
        max_turns=turns,
        max_usd=usd,
        usd_before=await here.app.archive.spent_usd(here.session.id),
    )


GOAL_COMMANDS = (
    SlashCommand(
        "goal [TEXT|status|stop|resume]",
        "Work over several turns until a goal is reached; --check runs a command to find out.",
        goal,
        # The turns that follow are not those of a message, which chats would have to post.
        surfaces=("cli",),
    ),
)
