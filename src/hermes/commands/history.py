"""History commands (branch, history, save, status, copy …) and the recap of a session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from hermes.codec.json import encode, plain
from hermes.codec.values import Value
from hermes.commands.formatting import (
    format_count,
    format_elapsed,
    format_money,
    one_line,
    plural,
    sanitize,
)
from hermes.commands.registry import (
    CommandContext,
    CopyText,
    Outcome,
    SlashCommand,
    SwitchSession,
    split_flags,
)
from hermes.commands.session import YES, recent, running_work
from hermes.context.references import typed_text
from hermes.core.errors import UsageError
from hermes.core.messages import AssistantMessage, Message, ToolMessage, UserMessage

PROMPT_CHARACTERS = 300
ANSWER_CHARACTERS = 200
ANSWER_LINES = 3


class RecapExchange(Value):
    """One user message, its final answer and the number of tool calls."""

    prompt: str
    answer: str = ""
    calls: int = 0


class MessageCounts(Value):
    """Message counts by kind."""

    messages: int
    user: int
    calls: int


def exchanges(messages: Sequence[Message], last: int) -> tuple[RecapExchange, ...]:
    """The last exchanges, oldest first, each cut to a few lines."""
    found: list[RecapExchange] = []
    for message in messages:
        match message:
            case UserMessage(origin="user"):
                prompt = one_line(typed_text(message.text), PROMPT_CHARACTERS)
                found.append(RecapExchange(prompt=prompt))
            case AssistantMessage() if found:
                now = found[-1]
                found[-1] = RecapExchange(
                    prompt=now.prompt,
                    answer=_shorten(message.text) or now.answer,
                    calls=now.calls + len(message.calls),
                )
            case _:
                pass
    return tuple(found[-last:]) if last else ()


def count_messages(messages: Sequence[Message]) -> MessageCounts:
    user = sum(isinstance(m, UserMessage) and m.origin == "user" for m in messages)
    calls = sum(len(m.results) for m in messages if isinstance(m, ToolMessage))
    return MessageCounts(messages=len(messages), user=user, calls=calls)


def _shorten(text: str) -> str:
    lines = [line.rstrip() for line in sanitize(text).strip().split("\n") if line.strip()]
    short = "\n".join(lines[:ANSWER_LINES])
    if len(short) > ANSWER_CHARACTERS:
        return short[: ANSWER_CHARACTERS - 1].rstrip() + "…"
    return short + ("\n…" if len(lines) > ANSWER_LINES else "")


BUSY = "A turn is running; wait for its end or interrupt it with /stop."
SHOWN_EXCHANGES = 10
RECAPPED = 2


async def sessions(here: CommandContext, argument: str) -> str:
    return await recent(here)


async def branch(here: CommandContext, argument: str) -> Outcome:
    if here.session.busy:
        raise UsageError(BUSY)
    if not here.session.transcript.messages:
        raise UsageError("This session is empty; send a message before you branch it.")
    before = here.session.transcript.title or here.session.id
    title = await here.app.archive.free_title(argument) if argument else ""
    forked = await here.app.archive.fork(here.session.id, title=title)
    return SwitchSession(
        session_id=forked, text=f"This is a copy of {one_line(before)}, which stays unchanged."
    )


async def clear(here: CommandContext, argument: str) -> Outcome | str:
    confirmed = YES in split_flags(argument, YES)[1]
    if not confirmed and (loss := await running_work(here)):
        return f"{loss} Confirm with `/clear --yes`."
    return SwitchSession(reason="new", clear=True)


async def history(here: CommandContext, argument: str) -> str:
    wanted = int(argument) if argument.isdecimal() else SHOWN_EXCHANGES
    shown = exchanges(here.session.transcript.messages, wanted)
    if not shown:
        return "There are no messages yet."
    return "\n\n".join(map(_exchange_text, shown))


async def save(here: CommandContext, argument: str) -> str:
    """Save the conversation to the working folder of the session."""
    transcript, now = here.session.transcript, here.app.context.world.clock.now()
    if not transcript.messages:
        raise UsageError("This session is empty; send a message before you save it.")
    moment = time.strftime("%Y%m%d_%H%M%S", time.localtime(now))
    opened = transcript.opened
    folder = Path(opened.cwd) if opened and opened.cwd else Path.cwd()
    path = folder / (argument or f"hermes_conversation_{moment}.json")
    body = {
        "session_id": here.session.id,
        "title": transcript.title,
        "model": transcript.model,
        "provider": transcript.provider,
        "messages": [plain(message) for message in transcript.messages],
    }
    text = here.app.context.redactor.text(encode(body).decode())

    def write() -> None:
        with path.open("x", encoding="utf-8") as file:
            file.write(f"{text}\n")

    try:
        await asyncio.to_thread(write)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written ({error.strerror}); give another path."
        ) from error
    return f"The conversation is in {path}."


async def status(here: CommandContext, argument: str) -> str:
    transcript, app = here.session.transcript, here.app
    window = app.models.window(transcript.model, transcript.provider)
    share = transcript.last_prompt * 100 // window if window else 0
    title = f" ({one_line(transcript.title)})" if transcript.title else ""
    used = format_count(transcript.last_prompt)
    count, tuned = count_messages(transcript.messages), app.controls[here.session.id]
    spent = "" if transcript.usage.cost is None else f" · {format_money(transcript.usage.cost)}"
    waiting = f" · {len(transcript.waiting)} queued" if transcript.waiting else ""
    processes = await here.session.workspace.processes.list()
    running = [each for each in processes if each.status == "running"]
    tuning = f" · effort {tuned.effort}" * bool(tuned.effort) + f" · {tuned.tier}" * bool(
        tuned.tier
    )
    lines = [
        f"Session   {here.session.id}{title}",
        f"Model     {transcript.model} ({transcript.provider}){tuning}",
        f"State     {'working' if here.session.busy else 'idle'}{waiting}",
        f"Messages  {count.messages} ({count.user} user, {count.calls} tool calls)",
        f"Context   {used} / {format_count(window)} ({share}%){spent}",
        f"Approvals {tuned.mode}",
        f"Folder    {here.session.workspace.cwd}",
    ]
    now = app.context.world.clock.now()
    lines += [
        f"Process   {each.id}  {format_elapsed(now - each.started_at)}"
        f"  {one_line(each.command, 60)}"
        for each in running
    ]
    shown = exchanges(transcript.messages, RECAPPED)
    return "\n".join((*lines, *("\n" + _exchange_text(each) for each in shown)))


async def copy(here: CommandContext, argument: str) -> Outcome:
    back = int(argument) if argument.isdecimal() and int(argument) else 1
    answers = [
        message.text
        for message in here.session.transcript.messages
        if isinstance(message, AssistantMessage) and message.text.strip()
    ]
    if len(answers) < back:
        raise UsageError("There is no such answer; /history shows the conversation.")
    return CopyText(text=answers[-back])


HISTORY_COMMANDS = (
    SlashCommand("sessions", "List recent sessions.", sessions),
    SlashCommand(
        "branch [TITLE]", "Continue in a copy of this session.", branch, aliases=("fork",)
    ),
    SlashCommand("clear", "Clear the screen and start a new session.", clear, surfaces=("cli",)),
    SlashCommand("history [N]", "Show the last N exchanges.", history, surfaces=("cli",)),
    SlashCommand("save [FILE]", "Save the conversation as JSON.", save, surfaces=("cli",)),
    SlashCommand("status", "Show the state of this session.", status),
    SlashCommand("copy [N]", "Copy the N-th last answer (default: 1).", copy, surfaces=("cli",)),
)


def _exchange_text(exchange: RecapExchange) -> str:
    calls = f"\n┊ {plural(exchange.calls, 'tool call')}" if exchange.calls else ""
    answer = f"\n{exchange.answer}" if exchange.answer else ""
    return f"❯ {exchange.prompt}{calls}{answer}"
