"""Session commands: help, new, resume, title, retry, undo, usage, quit."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.commands.formatting import format_count, format_money, one_line
from hermes.commands.registry import (
    CommandContext,
    EditDraft,
    Outcome,
    Quit,
    SendMessage,
    ShowText,
    SlashCommand,
    Suggestion,
    SwitchSession,
)
from hermes.commands.spending import cap_states
from hermes.core.commands import Retitle, Rewind
from hermes.core.errors import UsageError
from hermes.core.messages import Usage, UserMessage
from hermes.core.transcript import Transcript
from hermes.journal.archive import SessionInfo

RECENT = 10
CONFIRM = "--yes"


async def new(here: CommandContext, argument: str) -> Outcome:
    argument, sure = split_confirmation(argument)
    if loss := await running_work(here, sure):
        return ShowText(text=f"{loss} Confirm with `/new{f' {argument}' * bool(argument)} --yes`.")
    title = await here.app.archive.free_title(argument) if argument else ""
    return SwitchSession(title=title, text="A new session.", reason="new")


async def resume(here: CommandContext, argument: str) -> Outcome:
    if not argument:
        return ShowText(text=await recent(here))
    session_id = await here.app.archive.find(await _resolve_number(here, argument))
    if session_id == here.session.id:
        return ShowText(text="This session is already open.")
    return SwitchSession(session_id=session_id)


async def title(here: CommandContext, argument: str) -> Outcome:
    if not argument:
        return ShowText(text=here.session.transcript.title or "This session has no title.")
    clean = await here.app.archive.free_title(argument)
    await here.session.send(Retitle(title=clean))
    return ShowText(text=f"This session is now called {clean!r}.")


async def retry(here: CommandContext, argument: str) -> Outcome:
    said = _user_messages(here)
    if not said:
        return ShowText(text="There is no message to send again.")
    await here.session.send(Rewind(turns=1))
    return SendMessage(text=said[-1])


async def undo(here: CommandContext, argument: str) -> Outcome:
    said = _user_messages(here)
    if not said:
        return ShowText(text="There is nothing to take back.")
    wanted = int(argument) if argument.isdecimal() else 1
    turns = max(1, min(wanted, len(said)))
    await here.session.send(Rewind(turns=turns))
    count = "The last turn is" if turns == 1 else f"The last {turns} turns are"
    return EditDraft(draft=said[-turns], text=f"{count} undone; nothing was deleted.")


async def usage(here: CommandContext, argument: str) -> Outcome:
    transcript = here.session.transcript
    window = here.app.window(transcript.model, transcript.provider)
    share = transcript.last_prompt * 100 // window if window else 0
    lines = [
        f"Session   {_tokens(transcript.usage)}",
        *_unsettled_line(transcript),
        f"Context   {format_count(transcript.last_prompt)} / {format_count(window)} ({share}%)"
        + f" · shortened {len(transcript.compactions)}×" * bool(transcript.compactions),
        f"Model     {transcript.model} ({transcript.provider})",
        *(f"Budget    {cap}" for cap in await cap_states(here.app)),
    ]
    return ShowText(text="\n".join(lines))


async def quit_(here: CommandContext, argument: str) -> Outcome:
    argument, sure = split_confirmation(argument)
    if argument not in ("", "--delete"):
        raise UsageError("Use /quit, or /quit --delete to delete this session.")
    if argument and not sure and _asks(here) and here.session.transcript.messages:
        return ShowText(
            text="This deletes the session permanently. Confirm with `/quit --delete --yes`."
        )
    return Quit(delete=bool(argument))


def split_confirmation(argument: str) -> tuple[str, bool]:
    """The argument without `--yes`, and whether it was given."""
    words = argument.split()
    return " ".join(word for word in words if word != CONFIRM), CONFIRM in words


async def running_work(here: CommandContext, sure: bool) -> str:
    """What leaving this session would stop; empty when nothing runs."""
    if sure or not _asks(here):
        return ""
    processes = await here.session.workspace.processes.list()
    running = sum(each.status == "running" for each in processes)
    what = ["the turn that runs"] * here.session.busy
    what += [f"{running} background process{'es' * (running != 1)}"] * bool(running)
    return f"This would stop {' and '.join(what)}." if what else ""


def _asks(here: CommandContext) -> bool:
    return here.app.run.settings.approvals.destructive_slash_confirm


async def help_(here: CommandContext, argument: str) -> Outcome:
    return ShowText(text=here.registry.describe(argument) if argument else here.registry.help())


async def sessions_like(here: CommandContext, begun: str) -> Sequence[Suggestion]:
    """Recent sessions by prefix of title or id."""
    rows = await here.app.archive.recent(limit=50)
    return [
        Suggestion(text=row.title or row.id, words=_about(row), replaces=len(begun))
        for row in rows
        if row.id != here.session.id
        and (row.id.startswith(begun) or row.title.lower().startswith(begun.lower()))
    ]


SESSION_COMMANDS = (
    SlashCommand("help", "List the commands.", help_, arguments="[command]", category="info"),
    SlashCommand("new", "Start a new session.", new, arguments="[title]", aliases=("reset",)),
    SlashCommand(
        "resume",
        "Resume another session; without arguments: list them.",
        resume,
        arguments="[id|title|n]",
        complete=sessions_like,
    ),
    SlashCommand("title", "Show or set the title.", title, arguments="[title]"),
    SlashCommand("retry", "Undo the last turn and send its message again.", retry),
    SlashCommand("undo", "Undo the last turns.", undo, arguments="[n]"),
    SlashCommand(
        "usage", "Show tokens and cost of this session.", usage, aliases=("cost",), category="info"
    ),
    SlashCommand(
        "quit", "Leave.", quit_, arguments="[--delete]", aliases=("exit",), surfaces=("cli",)
    ),
)


async def recent(here: CommandContext) -> str:
    rows = await here.app.archive.recent(limit=RECENT)
    if not rows:
        return "There is no earlier session."
    lines = (
        f"{n:3}  {row.id}  {one_line(row.title or row.preview, 60)}"
        + ("  (this one)" if row.id == here.session.id else "")
        for n, row in enumerate(rows, 1)
    )
    return "\n".join((*lines, "Use /resume with a number, an id or a title."))


async def _resolve_number(here: CommandContext, argument: str) -> str:
    """Resolve a number of the list to its id; other text is returned unchanged."""
    if argument.isdecimal() and 1 <= int(argument) <= RECENT:
        rows = await here.app.archive.recent(limit=RECENT)
        if int(argument) <= len(rows):
            return rows[int(argument) - 1].id
    return argument


def _about(row: SessionInfo) -> str:
    return one_line(f"{row.id if row.title else ''} {row.preview}", 60)


def _user_messages(here: CommandContext) -> list[str]:
    """The user messages that started turns, as far as they are in view."""
    messages = here.session.transcript.messages
    firsts = (messages[at] for at in here.session.transcript.turn_starts if at < len(messages))
    return [
        first.text for first in firsts if isinstance(first, UserMessage) and first.origin == "user"
    ]


def _unsettled_line(transcript: Transcript) -> list[str]:
    """Model calls without a recorded end."""
    calls = transcript.unsettled.values()
    if not calls:
        return []
    most = sum((call.usage for call in calls), Usage())
    count = format_count(most.prompt + most.output)
    price = "" if most.cost is None else f", {format_money(most.cost)}"
    words = "1 call" if len(calls) == 1 else f"{len(calls)} calls"
    return [f"Assumed   {words} whose end is not known: up to {count} tokens{price}"]


def _tokens(used: Usage) -> str:
    parts = [f"in {format_count(used.prompt)}", f"out {format_count(used.output)}"]
    if used.cache_read:
        share = used.cache_read * 100 // used.prompt
        parts.append(f"cache read {format_count(used.cache_read)} ({share}%)")
    if used.reasoning:
        parts.append(f"reasoning {format_count(used.reasoning)}")
    parts.append(f"{used.requests} calls")
    parts.append("cost unknown" if used.cost is None else format_money(used.cost))
    return " · ".join(parts) + (" (estimated)" if used.estimated else "")
