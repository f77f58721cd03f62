"""Session commands: help, new, resume, title, retry, undo, usage, quit; and spending caps."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.commands.formatting import format_count, format_money, one_line, plural
from hermes.commands.registry import (
    CommandContext,
    Outcome,
    Quit,
    SendMessage,
    SlashCommand,
    Suggestion,
    SwitchSession,
    split_flags,
)
from hermes.context.references import typed_text
from hermes.core.caps import DAY_SECONDS, Cap, Caps, first_day_of_month
from hermes.core.commands import Retitle, Rewind
from hermes.core.messages import Usage, UserMessage
from hermes.core.transcript import Transcript
from hermes.journal.archive import SessionArchive
from hermes.journal.listing import Spending

RECENT = 10
YES = "--yes"


async def new(here: CommandContext, argument: str) -> Outcome | str:
    argument, flags = split_flags(argument, YES)
    if not flags and (loss := await running_work(here)):
        return f"{loss} Confirm with `/new{f' {argument}' * bool(argument)} --yes`."
    title = await here.app.archive.free_title(argument) if argument else ""
    return SwitchSession(title=title, text="This is a new session.", reason="new")


async def resume(here: CommandContext, argument: str) -> Outcome | str:
    if not argument:
        return await recent(here)
    if argument.isdecimal() and 1 <= int(argument) <= RECENT:
        rows = await here.app.archive.recent(limit=RECENT)
        argument = rows[int(argument) - 1].id if int(argument) <= len(rows) else argument
    session_id = await here.app.archive.find(argument)
    if session_id == here.session.id:
        return "This session is already open."
    return SwitchSession(session_id=session_id)


async def title(here: CommandContext, argument: str) -> str:
    if not argument:
        return here.session.transcript.title or "This session has no title."
    clean = await here.app.archive.free_title(argument)
    await here.session.send(Retitle(title=clean))
    return f"This session is now called {clean!r}."


async def retry(here: CommandContext, argument: str) -> Outcome | str:
    texts = _user_messages(here)
    if not texts:
        return "There is no message to send again."
    await here.session.send(Rewind(turns=1))
    return SendMessage(text=texts[-1])


async def undo(here: CommandContext, argument: str) -> str:
    texts = _user_messages(here)
    if not texts:
        return "There is no turn to undo."
    wanted = int(argument) if argument.isdecimal() else 1
    turns = max(1, min(wanted, len(texts)))
    await here.session.send(Rewind(turns=turns))
    return f"{plural(turns, 'turn')} undone, from “{one_line(typed_text(texts[-turns]), 80)}”."


async def usage(here: CommandContext, argument: str) -> str:
    transcript, now = here.session.transcript, here.app.context.world.clock.now()
    window = here.app.models.window(transcript.model, transcript.provider)
    share = transcript.last_prompt * 100 // window if window else 0
    lines = [
        f"Session   {_tokens(transcript.usage)}",
        *_unsettled_line(transcript),
        f"Context   {format_count(transcript.last_prompt)} / {format_count(window)} ({share}%)"
        + f" · compacted {len(transcript.compactions)}×" * bool(transcript.compactions),
        f"Model     {transcript.model} ({transcript.provider})",
        *(f"Budget    {cap}" for cap in await cap_states(here.app.archive, here.app.caps, now)),
    ]
    return "\n".join(lines)


async def quit_(here: CommandContext, argument: str) -> Outcome | str | None:
    argument, flags = split_flags(argument, YES)
    if argument not in ("", "--delete"):
        return None
    if argument and not flags and _asks(here) and here.session.transcript.messages:
        return "This deletes the session permanently. Confirm with `/quit --delete --yes`."
    if not flags and (loss := await running_work(here)):
        return f"{loss} Confirm with `/quit --yes`."
    return Quit(delete=bool(argument))


async def running_work(here: CommandContext) -> str:
    """What leaving this session would stop; empty when nothing runs or the settings do not ask."""
    if not _asks(here):
        return ""
    processes = await here.session.workspace.processes.list()
    running = sum(each.status == "running" for each in processes)
    what = ["the running turn"] * here.session.busy
    what += [plural(running, "background process", "background processes")] * bool(running)
    tasks = len(here.background_work.names) if here.background_work else 0
    what += [plural(tasks, "background task")] * bool(tasks)
    return f"This would stop {' and '.join(what)}." if what else ""


def _asks(here: CommandContext) -> bool:
    return here.app.context.settings.approvals.destructive_slash_confirm


async def help_(here: CommandContext, argument: str) -> str:
    return here.registry.help(argument)


async def sessions_like(here: CommandContext, begun: str) -> Sequence[Suggestion]:
    """Recent sessions by prefix of title or id."""
    rows = await here.app.archive.recent(limit=50)
    return [
        Suggestion(
            text=row.title or row.id,
            description=one_line(f"{row.id if row.title else ''} {row.preview}", 60),
            replaces=len(begun),
        )
        for row in rows
        if row.id != here.session.id
        and (row.id.startswith(begun) or row.title.lower().startswith(begun.lower()))
    ]


SESSION_COMMANDS = (
    SlashCommand("help [WORD]", "List all commands, those that mention a word, or one.", help_),
    SlashCommand("new [TITLE]", "Start a new session.", new, aliases=("reset",)),
    SlashCommand(
        "resume [ID|TITLE|N]",
        "Resume another session; without arguments, list recent sessions.",
        resume,
        complete=sessions_like,
    ),
    SlashCommand("title [TITLE]", "Show or set the title of this session.", title),
    SlashCommand("retry", "Undo the last turn and send its message again.", retry),
    SlashCommand("undo [N]", "Undo the last turn, or the last N turns.", undo),
    SlashCommand(
        "usage", "Show the tokens and the cost of this session.", usage, aliases=("cost",)
    ),
    SlashCommand(
        "quit [--delete]",
        "Quit; with --delete, also delete this session.",
        quit_,
        aliases=("exit",),
        surfaces=("cli",),
    ),
)


async def recent(here: CommandContext) -> str:
    rows = await here.app.archive.recent(limit=RECENT)
    if not rows:
        return "There is no earlier session."
    lines = (
        f"{n:3}  {row.id}  {one_line(row.title or row.preview, 60)}"
        + ("  (current)" if row.id == here.session.id else "")
        for n, row in enumerate(rows, 1)
    )
    return "\n".join((*lines, "Use /resume with a number, an id or a title."))


def _user_messages(here: CommandContext) -> list[str]:
    """The user messages that started turns, as far as they are in view."""
    messages = here.session.transcript.messages
    firsts = (messages[at] for at in here.session.transcript.turn_starts if at < len(messages))
    return [
        first.text for first in firsts if isinstance(first, UserMessage) and first.origin == "user"
    ]


def _unsettled_line(transcript: Transcript) -> list[str]:
    """Model calls whose outcome was not recorded."""
    calls = transcript.unsettled.values()
    if not calls:
        return []
    most = sum((call.usage for call in calls), Usage())
    count = format_count(most.prompt + most.output)
    price = "" if most.cost is None else f", {format_money(most.cost)}"
    description = f"{plural(len(calls), 'call')} with an unknown outcome"
    return [f"Assumed   {description}: up to {count} tokens{price}"]


def _tokens(used: Usage) -> str:
    parts = [f"in {format_count(used.prompt)}", f"out {format_count(used.output)}"]
    if used.cache_read:
        share = used.cache_read * 100 // used.prompt
        parts.append(f"cache read {format_count(used.cache_read)} ({share}%)")
    if used.reasoning:
        parts.append(f"reasoning {format_count(used.reasoning)}")
    parts.append(plural(used.requests, "call"))
    parts.append("cost unknown" if used.cost is None else format_money(used.cost))
    return " · ".join(parts) + (" (estimated)" if used.estimated else "")


async def cap_states(archive: SessionArchive, caps: Caps, now: float) -> tuple[str, ...]:
    """How much of the daily and monthly caps is used, for those that are set."""
    if not (caps.day.is_set or caps.month.is_set):
        return ()
    month = await archive.spending(since=first_day_of_month(now) * DAY_SECONDS)
    day = await archive.spending(since=now)
    return (
        *_cap_lines("today", "day", caps.day, day),
        *_cap_lines("month", "month", caps.month, month),
    )


def _cap_lines(name: str, scope: str, cap: Cap, lines: Sequence[Spending]) -> list[str]:
    budgets = []
    if cap.usd is not None:
        dollars = sum((line.usage.cost or 0) + (line.assumed.cost or 0) for line in lines)
        spent = f"{format_money(dollars)} of {format_money(cap.usd)}"
        budgets.append(f"{name} {spent} (budget.{scope})")
    if cap.tokens is not None:
        tokens = sum(
            each.prompt + each.output for line in lines for each in (line.usage, line.assumed)
        )
        spent = f"{format_count(tokens)} of {format_count(cap.tokens)} tokens"
        budgets.append(f"{name} {spent} (budget.{scope}.tokens)")
    return budgets
