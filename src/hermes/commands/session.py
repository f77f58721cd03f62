"""Commands about the session itself: new, resume, title, retry, undo, usage, help, quit."""

from __future__ import annotations

from hermes.commands.registry import (
    Drafted,
    Here,
    Left,
    Moved,
    Outcome,
    Registry,
    Sent,
    Shown,
    SlashCommand,
)
from hermes.core.commands import End, Retitle, Rewind
from hermes.core.errors import HermesError
from hermes.core.messages import Usage, UserMessage


async def new(here: Here, argument: str) -> Outcome:
    await here.session.send(End(reason="new"))
    return Moved(title=argument, text="A new session.")


async def resume(here: Here, argument: str) -> Outcome:
    if not argument:
        return Shown(text=await _recent(here))
    try:
        session_id = await here.app.library.find(await _numbered(here, argument))
    except HermesError as error:
        return Shown(text=str(error))
    if session_id == here.session.id:
        return Shown(text="You are in that session.")
    return Moved(session_id=session_id)


async def title(here: Here, argument: str) -> Outcome:
    if not argument:
        return Shown(text=here.session.transcript.title or "This session has no title.")
    try:
        clean = await here.app.library.free_title(argument)
        await here.session.send(Retitle(title=clean))
    except HermesError as error:
        return Shown(text=str(error))
    return Shown(text=f"This session is now called {clean!r}.")


async def retry(here: Here, argument: str) -> Outcome:
    words = _last_words(here)
    if not words:
        return Shown(text="There is nothing to send again.")
    await here.session.send(Rewind(turns=1))
    return Sent(text=words)


async def undo(here: Here, argument: str) -> Outcome:
    turns = int(argument) if argument.isdigit() else 1
    words = _last_words(here, turns)
    try:
        await here.session.send(Rewind(turns=turns))
    except HermesError as error:
        return Shown(text=str(error))
    count = "The last turn is" if turns == 1 else f"The last {turns} turns are"
    return Drafted(draft=words, text=f"{count} taken back; nothing was deleted.")


async def usage(here: Here, argument: str) -> Outcome:
    transcript = here.session.transcript
    window = here.app.window(transcript.model, transcript.provider)
    share = transcript.last_prompt * 100 // window if window else 0
    return Shown(
        text=f"Session   {_tokens(transcript.usage)}\n"
        f"Context   {_short(transcript.last_prompt)} / {_short(window)} ({share}%)\n"
        f"Model     {transcript.model} ({transcript.provider})"
    )


async def quit_(here: Here, argument: str) -> Outcome:
    return Left()


async def help_(here: Here, argument: str) -> Outcome:
    return Shown(text=Registry(COMMANDS, "cli").help())


COMMANDS = (
    SlashCommand("help", "What can be typed here.", help_, category="info"),
    SlashCommand("new", "Begin a new session.", new, arguments="[title]", aliases=("reset",)),
    SlashCommand(
        "resume", "Go on with another session; alone: list them.", resume, arguments="[id|title|n]"
    ),
    SlashCommand("title", "Show or set the title.", title, arguments="[title]"),
    SlashCommand("retry", "Take back the last turn and send it again.", retry),
    SlashCommand("undo", "Take back the last turns.", undo, arguments="[n]"),
    SlashCommand("usage", "Tokens and cost of this session.", usage, category="info"),
    SlashCommand("quit", "Leave.", quit_, aliases=("exit",), surfaces=("cli",)),
)


async def _recent(here: Here) -> str:
    rows = await here.app.library.recent(limit=10)
    if not rows:
        return "There is no earlier session."
    lines = (f"{n:3}  {row.id}  {row.title or row.preview}"[:100] for n, row in enumerate(rows, 1))
    return "\n".join((*lines, "Use /resume with a number, an id or a title."))


async def _numbered(here: Here, argument: str) -> str:
    if argument.isdigit() and 1 <= int(argument) <= 10:
        rows = await here.app.library.recent(limit=10)
        if int(argument) <= len(rows):
            return rows[int(argument) - 1].id
    return argument


def _last_words(here: Here, turns: int = 1) -> str:
    said = [
        message.text
        for message in here.session.transcript.messages
        if isinstance(message, UserMessage) and message.origin == "user"
    ]
    return said[-turns] if len(said) >= turns else ""


def _tokens(used: Usage) -> str:
    parts = [f"in {_short(used.prompt)}", f"out {_short(used.output)}"]
    if used.cache_read:
        parts.append(
            f"cache read {_short(used.cache_read)} ({used.cache_read * 100 // used.prompt}%)"
        )
    if used.reasoning:
        parts.append(f"reasoning {_short(used.reasoning)}")
    parts.append(f"{used.requests} calls")
    parts.append("cost unknown" if used.cost is None else f"${used.cost:.4f}")
    return " · ".join(parts) + (" (estimated)" if used.estimated else "")


def _short(count: int) -> str:
    if count < 1_000:
        return str(count)
    return f"{count / 1_000:.1f}K" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"
