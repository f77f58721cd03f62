"""Context commands: compress, personality."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes.commands.formatting import format_count
from hermes.commands.registry import CommandContext, SlashCommand, Suggestion
from hermes.context.persona import personality_names, personality_overlay
from hermes.core.commands import Compact
from hermes.core.events import Compacted

PREVIEW_FLAG = "--preview"
_HERE = re.compile(r"here(?:\s+(\d+))?$")
MANY_COMPACTIONS = 2


async def compress(here: CommandContext, argument: str) -> str:
    wanted = " ".join(word for word in argument.split() if word != PREVIEW_FLAG)
    match = _HERE.match(wanted)
    command = Compact(keep=int(match[1] or 1)) if match else Compact(topic=wanted)
    if PREVIEW_FLAG in argument.split():
        preview = here.session.preview_compaction(command)
        if preview is None:
            return "There is nothing to shorten in this session yet."
        return f"{_sizes(preview, verb='would become')} Nothing was changed."
    await here.session.send(command)
    done = here.session.transcript.compactions
    text = f"{_sizes(done[-1])} The originals can be recalled with session_search."
    if not done[-1].summary:
        text += " The summary failed; older messages were truncated."
    if len(done) >= MANY_COMPACTIONS:
        text += f" This session was shortened {len(done)} times; start a new session with /new."
    return text


async def personality(here: CommandContext, argument: str) -> str:
    settings = here.app.run.settings
    if not argument:
        now = here.session.transcript.overlay.name or "none"
        names = ", ".join(personality_names(settings))
        return f"Personality: {now}\nThere are: {names}; none takes it away."
    overlay = personality_overlay(settings, argument)
    await here.session.send(overlay)
    if not overlay.name:
        return "The personality is off."
    return f"The personality of this session is now {overlay.name}."


async def personalities_like(here: CommandContext, begun: str) -> Sequence[Suggestion]:
    names = ("none", *personality_names(here.app.run.settings))
    return [Suggestion(text=name, replaces=len(begun)) for name in names if name.startswith(begun)]


CONTEXT_COMMANDS = (
    SlashCommand(
        "compress [topic|here n] [--preview]",
        "Compact the context of this session.",
        compress,
        aliases=("compact",),
    ),
    SlashCommand(
        "personality [name|none]",
        "Show or change the personality.",
        personality,
        complete=personalities_like,
    ),
)


def _sizes(made: Compacted, verb: str = "became") -> str:
    before, after = format_count(made.tokens_before), format_count(made.tokens_after)
    return f"About {before} tokens {verb} {after}."
