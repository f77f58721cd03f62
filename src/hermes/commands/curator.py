"""`/curator`: archives unused skills of the agent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes.commands.registry import CommandContext, Outcome, ShowText, SlashCommand
from hermes.commands.tuning import choices
from hermes.core.errors import UsageError

if TYPE_CHECKING:
    from hermes.skills.curator import Curator, Move

CURATOR_VERBS = ("status", "run", "pause", "resume")


async def curator(here: CommandContext, argument: str) -> Outcome:
    verb = argument or CURATOR_VERBS[0]
    if verb not in CURATOR_VERBS:
        raise UsageError(f"Use /curator [{'|'.join(CURATOR_VERBS)}]; `hermes curator` does more.")
    work = here.app.skills().curator()
    return ShowText(text=await asyncio.to_thread(_done, work, verb))


def _done(work: Curator, verb: str) -> str:
    match verb:
        case "run":
            return _moves(work.run(), "is now") or "Nothing to archive."
        case "pause" | "resume":
            work.pause(verb == "pause")
            return "Paused." if verb == "pause" else "The curator runs automatically again."
        case _:
            return _status(work)


def _status(work: Curator) -> str:
    state = work.state()
    at = state.last_run_at
    ran = time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) if at else "never"
    lines = [f"{'paused' if state.paused else 'on'}; last run: {ran}"]
    lines += filter(None, [_moves(work.plan(), "would be")])
    return "\n".join((*lines, f"{len(work.list_archived())} in the archive"))


def _moves(moves: Sequence[Move], verb: str) -> str:
    return "\n".join(f"{m.name}: {verb} {m.to} ({m.idle_days} days without use)" for m in moves)


CURATOR_COMMANDS = (
    SlashCommand(
        "curator",
        "Manage unused skills.",
        curator,
        arguments="[status|run|pause|resume]",
        category="tools",
        complete=choices(*CURATOR_VERBS),
    ),
)
