"""Commands that change the running session: reasoning, fast, permission, display, context,
personality."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from hermes.app.session_controls import EFFORTS, FAST, MODES, SessionControls, save_setting
from hermes.codec.values import replace
from hermes.commands.formatting import format_count
from hermes.commands.registry import (
    CommandContext,
    SlashCommand,
    Suggestion,
    split_flags,
    suggest,
)
from hermes.context.persona import personality_names, personality_overlay
from hermes.core.commands import Compact
from hermes.core.errors import UsageError
from hermes.core.events import Compacted

PROGRESS = ("off", "new", "all", "verbose")
GLOBAL = "--global"
MODE_WORDS = {
    "manual": "Hermes asks you before risky effects.",
    "smart": "A model approves harmless effects; Hermes asks you about the rest.",
    "off": "YOLO: Hermes never asks; only the most dangerous effects are denied.",
}
MARKDOWN_WORDS = {
    "render": "with headings, colours, tables and framed code",
    "strip": "without its marks",
    "raw": "exactly as the model writes it",
}
BUSY_WORDS = {
    "interrupt": "stops the turn and comes next",
    "queue": "waits for the end of the turn",
    "steer": "is read at the next step of the turn",
}


async def reasoning(here: CommandContext, argument: str) -> str | None:
    tuned = _controls(here)
    word, flags = split_flags(argument, GLOBAL)
    keep = GLOBAL in flags
    where = ", here and in new sessions" if keep else " in this session"
    if not word:
        shown = "shown" if tuned.display.show_reasoning else "hidden"
        return f"Reasoning effort: {tuned.effort or 'the default of the provider'}, {shown}."
    if word in ("show", "hide"):
        _display(here, "show_reasoning", word == "show", keep=keep)
        return f"Reasoning is {'shown' if word == 'show' else 'hidden'}{where}."
    if word not in EFFORTS:
        return None
    await here.session.send(tuned.change(effort=word))
    if keep:
        save_setting(here.app.context, ("agent", "reasoning_effort"), word)
    return f"The reasoning effort is {word}{where}."


async def fast(here: CommandContext, argument: str) -> str | None:
    if argument not in ("", "on", "off"):
        return None
    tuned, transcript = _controls(here), here.session.transcript
    on = argument == "on" if argument else tuned.tier != FAST
    if on and not here.app.models.takes_tier(transcript.model, transcript.provider, FAST):
        raise UsageError(f"{transcript.provider} has no faster tier; nothing was changed.")
    await here.session.send(tuned.change(tier=FAST if on else ""))
    if on:
        return "Requests of this session have priority, at a higher price; /fast off ends this."
    return "Requests have the normal priority and price."


async def permission(here: CommandContext, argument: str) -> str | None:
    tuned = _controls(here)
    if argument and argument not in MODES:
        return None
    if argument:
        _owners_only(here)
        await here.session.send(tuned.change(mode=argument))
    scope = " This applies to this session." if argument else ""
    return f"{tuned.mode}: {MODE_WORDS[tuned.mode]}{scope}"


async def yolo(here: CommandContext, argument: str) -> str:
    _owners_only(here)
    tuned = _controls(here)
    mode = tuned.careful_mode if tuned.mode == "off" else "off"
    await here.session.send(tuned.change(mode=mode))
    return MODE_WORDS[tuned.mode]


async def verbose(here: CommandContext, argument: str) -> str | None:
    now = _controls(here).display.tool_progress
    wanted = argument or PROGRESS[(PROGRESS.index(now) + 1) % len(PROGRESS)]
    if wanted not in PROGRESS:
        return None
    _display(here, "tool_progress", wanted)
    return f"Tool calls: {wanted}."


async def busy(here: CommandContext, argument: str) -> str | None:
    if argument and argument not in BUSY_WORDS:
        return None
    if argument:
        _display(here, "busy_input_mode", argument)
    mode = _controls(here).display.busy_input_mode
    return f"{mode}: a message that you send during a turn {BUSY_WORDS[mode]}."


async def markdown(here: CommandContext, argument: str) -> str | None:
    if argument and argument not in MARKDOWN_WORDS:
        return None
    if argument:
        _display(here, "final_response_markdown", argument)
    style = _controls(here).display.final_response_markdown
    return f"{style}: Markdown in answers is shown {MARKDOWN_WORDS[style]}."


def _switch(key: str, name: str) -> Callable[[CommandContext, str], Awaitable[str | None]]:
    async def run(here: CommandContext, argument: str) -> str | None:
        if argument not in ("", "on", "off"):
            return None
        wanted = argument == "on" if argument else not getattr(_controls(here).display, key)
        _display(here, key, wanted)
        return f"{name}: {'on' if wanted else 'off'}."

    return run


PREVIEW = "--preview"
_HERE = re.compile(r"here(?:\s+(\d+))?$")
MANY_COMPACTIONS = 2


async def compress(here: CommandContext, argument: str) -> str:
    topic, flags = split_flags(argument, PREVIEW)
    keep = _HERE.match(topic)
    command = Compact(keep=int(keep[1] or 1)) if keep else Compact(topic=topic)
    if flags:
        preview = here.session.preview_compaction(command)
        if preview is None:
            return "This session is too short to be compacted."
        return f"{_sizes(preview, verb='would become')} Nothing was changed."
    await here.session.send(command)
    done = here.session.transcript.compactions
    text = f"{_sizes(done[-1])} The model can still find the originals with session_search."
    if not done[-1].summary:
        text += " The summary failed; older messages were truncated."
    if len(done) >= MANY_COMPACTIONS:
        text += f" This session was compacted {len(done)} times; /new starts a new one."
    return text


def _sizes(made: Compacted, verb: str = "became") -> str:
    before, after = format_count(made.tokens_before), format_count(made.tokens_after)
    return f"About {before} tokens {verb} {after}."


async def personality(here: CommandContext, argument: str) -> str:
    settings = here.app.context.settings
    if not argument:
        now = here.session.transcript.overlay.name or "none"
        return f"Personality: {now}\nAvailable: none, {', '.join(personality_names(settings))}"
    overlay = personality_overlay(settings, argument)
    await here.session.send(overlay)
    return f"The personality of this session is now {overlay.name or 'none'}."


async def complete_personalities(here: CommandContext, begun: str) -> Sequence[Suggestion]:
    return suggest(("none", *personality_names(here.app.context.settings)), begun)


TUNING_COMMANDS = (
    SlashCommand(
        f"reasoning [{'|'.join(EFFORTS)}|show|hide] [--global]",
        "Set the reasoning effort, or show or hide the reasoning.",
        reasoning,
    ),
    SlashCommand("fast [on|off]", "Use the faster, more expensive tier of the provider.", fast),
    SlashCommand(
        f"permission [{'|'.join(MODES)}]", "Show or set who approves risky effects.", permission
    ),
    SlashCommand("yolo", "Switch approvals off, or on again.", yolo),
    SlashCommand(
        f"verbose [{'|'.join(PROGRESS)}]",
        "Set how tool calls are shown; without arguments, use the next level.",
        verbose,
        surfaces=("cli",),
    ),
    SlashCommand(
        f"busy [{'|'.join(BUSY_WORDS)}]",
        "Set what happens to a message that you send during a turn.",
        busy,
        surfaces=("cli",),
    ),
    SlashCommand(
        f"markdown [{'|'.join(MARKDOWN_WORDS)}]",
        "Show or set how Markdown in answers is shown.",
        markdown,
        surfaces=("cli",),
    ),
    SlashCommand(
        "statusbar [on|off]",
        "Show or hide the status bar.",
        _switch("status_bar", "Status bar"),
        aliases=("sb",),
        surfaces=("cli",),
    ),
    SlashCommand(
        "timestamps [on|off]",
        "Show or hide timestamps.",
        _switch("timestamps", "Timestamps"),
        surfaces=("cli",),
    ),
    SlashCommand(
        "compress [TOPIC|here N] [--preview]",
        "Compact the context of this session.",
        compress,
        aliases=("compact",),
    ),
    SlashCommand(
        "personality [NAME|none]",
        "Show or change the personality of this session.",
        personality,
        complete=complete_personalities,
    ),
)


def _controls(here: CommandContext) -> SessionControls:
    return here.app.controls[here.session.id]


def _owners_only(here: CommandContext) -> None:
    opened = here.session.transcript.opened
    if opened is not None and opened.principal != "owner":
        raise UsageError("Only the owner of this Hermes can change who approves risky effects.")


def _display(here: CommandContext, key: str, value: Any, *, keep: bool = False) -> None:
    tuned = _controls(here)
    tuned.display = replace(tuned.display, **{key: value})
    if keep:
        save_setting(here.app.context, ("display", key), value)
