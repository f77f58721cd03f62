"""Commands that tune a session: reasoning, fast, permission, yolo, verbose, busy, statusbar,
timestamps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from hermes.app.session_controls import EFFORTS, FAST, MODES, SessionControls, save_setting
from hermes.codec.values import replace
from hermes.commands.registry import CommandContext, Outcome, ShowText, SlashCommand, Suggestion
from hermes.core.errors import UsageError

PROGRESS = ("off", "new", "all", "verbose")
BUSY = ("interrupt", "queue", "steer")
GLOBAL = "--global"
MODE_WORDS = {
    "manual": "You are asked before risky effects.",
    "smart": "A model allows what is simple; you are asked about the rest.",
    "off": "YOLO: nothing is asked, only the worst refused.",
}


async def reasoning(here: CommandContext, argument: str) -> str:
    tuned, words = _session_tuning(here), argument.split()
    keep = GLOBAL in words
    rest = [word for word in words if word != GLOBAL]
    match rest:
        case []:
            shown = "shown" if tuned.display.show_reasoning else "hidden"
            effort = tuned.effort or "the provider's default"
            return f"Reasoning: {effort}, {shown}. Use {', '.join(EFFORTS)}, show, hide."
        case ["show" | "hide" as word]:
            _display(here, "show_reasoning", word == "show", keep=keep)
            return f"Reasoning is {'shown' if word == 'show' else 'hidden'}{_for(keep)}."
        case [level] if level in EFFORTS:
            await here.session.send(tuned.change(effort=level))
            if keep:
                save_setting(here.app.run, ("agent", "reasoning_effort"), level)
            return f"The model thinks with effort {level}{_for(keep)}."
    raise UsageError(f"Use /reasoning [{'|'.join(EFFORTS)}|show|hide] [--global].")


async def fast(here: CommandContext, argument: str) -> str:
    if argument not in ("", "on", "off"):
        raise UsageError("Use /fast [on|off].")
    tuned, transcript = _session_tuning(here), here.session.transcript
    on = argument == "on" if argument else tuned.tier != FAST
    if on and not here.app.models.takes_tier(transcript.model, transcript.provider, FAST):
        raise UsageError(f"{transcript.provider} has no faster tier; nothing changed.")
    await here.session.send(tuned.change(tier=FAST if on else ""))
    return (
        "Fast: requests have priority at a higher price in this session. /fast off ends it."
        if on
        else "Fast is off: requests have the normal priority and price."
    )


async def permission(here: CommandContext, argument: str) -> str:
    tuned = _session_tuning(here)
    if argument and argument not in MODES:
        raise UsageError(f"Use /permission [{'|'.join(MODES)}].")
    if argument:
        _owners_only(here)
        await here.session.send(tuned.change(mode=argument))
    return f"{tuned.mode}: {MODE_WORDS[tuned.mode]}" + " In this session." * bool(argument)


async def yolo(here: CommandContext, argument: str) -> str:
    _owners_only(here)
    tuned = _session_tuning(here)
    mode = tuned.careful_mode if tuned.mode == "off" else "off"
    await here.session.send(tuned.change(mode=mode))
    return MODE_WORDS[tuned.mode]


async def verbose(here: CommandContext, argument: str) -> str:
    now = _session_tuning(here).display.tool_progress
    wanted = argument or PROGRESS[(PROGRESS.index(now) + 1) % len(PROGRESS)]
    if wanted not in PROGRESS:
        raise UsageError(f"Use /verbose [{'|'.join(PROGRESS)}].")
    _display(here, "tool_progress", wanted)
    return f"Tool lines: {wanted}."


async def busy(here: CommandContext, argument: str) -> str:
    if argument and argument not in BUSY:
        raise UsageError(f"Use /busy [{'|'.join(BUSY)}].")
    if argument:
        _display(here, "busy_input_mode", argument)
    mode = _session_tuning(here).display.busy_input_mode
    words = {
        "interrupt": "stops it and comes next",
        "queue": "waits for its end",
        "steer": "is read at its next step",
    }
    return f"{mode}: what you send while a turn runs {words[mode]}."


def _switch(key: str, name: str) -> Callable[[CommandContext, str], Awaitable[Outcome]]:
    async def run(here: CommandContext, argument: str) -> Outcome:
        if argument not in ("", "on", "off"):
            raise UsageError("Use on, off, or nothing to change it.")
        now = bool(getattr(_session_tuning(here).display, key))
        wanted = argument == "on" if argument else not now
        _display(here, key, wanted)
        return ShowText(text=f"{name}: {'on' if wanted else 'off'}.")

    return run


def choices(*words: str) -> Callable[[CommandContext, str], Awaitable[Sequence[Suggestion]]]:
    """Completes the first argument to one of these words."""

    async def complete(here: CommandContext, begun: str) -> Sequence[Suggestion]:
        return [Suggestion(text=w, replaces=len(begun)) for w in words if w.startswith(begun)]

    return complete


TUNING_COMMANDS = (
    SlashCommand(
        "reasoning [level|show|hide] [--global]",
        "Set the reasoning effort and whether it is shown.",
        reasoning,
        complete=choices(*EFFORTS, "show", "hide"),
    ),
    SlashCommand(
        "fast [on|off]",
        "Use the faster, more expensive tier if available.",
        fast,
        complete=choices("on", "off"),
    ),
    SlashCommand(
        "permission [manual|smart|off]",
        "Set who approves risky effects.",
        permission,
        complete=choices(*MODES),
    ),
    SlashCommand("yolo", "Toggle approvals off or on.", yolo),
    SlashCommand(
        "verbose [off|new|all|verbose]",
        "Set the detail of tool output; without arguments: the next level.",
        verbose,
        surfaces=("cli",),
        complete=choices(*PROGRESS),
    ),
    SlashCommand(
        "busy [interrupt|queue|steer]",
        "Set what Enter does while a turn runs.",
        busy,
        surfaces=("cli",),
        complete=choices(*BUSY),
    ),
    SlashCommand(
        "statusbar [on|off]",
        "Show or hide the status bar.",
        _switch("status_bar", "Status bar"),
        aliases=("sb",),
        surfaces=("cli",),
        complete=choices("on", "off"),
    ),
    SlashCommand(
        "timestamps [on|off]",
        "Show or hide timestamps.",
        _switch("timestamps", "Timestamps"),
        surfaces=("cli",),
        complete=choices("on", "off"),
    ),
)


def _session_tuning(here: CommandContext) -> SessionControls:
    return here.app.controls[here.session.id]


def _owners_only(here: CommandContext) -> None:
    opened = here.session.transcript.opened
    if opened is not None and opened.principal != "owner":
        raise UsageError("Only the owner can change who approves risky effects.")


def _display(here: CommandContext, key: str, value: Any, *, keep: bool = False) -> None:
    tuned = _session_tuning(here)
    tuned.display = replace(tuned.display, **{key: value})
    if keep:
        save_setting(here.app.run, ("display", key), value)


def _for(keep: bool) -> str:
    return ", here and in new sessions" if keep else " in this session"
