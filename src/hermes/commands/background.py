"""Background commands: queue, steer, stop, background, btw."""

from __future__ import annotations

from hermes.app.side_questions import in_background, side_answer
from hermes.commands.formatting import explain_ending, one_line, sanitize
from hermes.commands.registry import CommandContext, Outcome, SendMessage, SlashCommand, StartWork
from hermes.core.commands import Interrupt, Steer
from hermes.core.errors import HermesError, UsageError

NAMED = 40


async def queue(here: CommandContext, argument: str) -> Outcome | str:
    if not argument:
        waiting = [each.message.text for each in here.session.transcript.waiting.values()]
        lines = [f"{n:3}  {one_line(text, 80)}" for n, text in enumerate(waiting, 1)]
        return "\n".join(lines) or "The queue is empty. Use /queue TEXT."
    return SendMessage(text=argument)


async def steer(here: CommandContext, argument: str) -> str:
    if not argument:
        raise UsageError("Use /steer TEXT; the running turn reads it at its next step.")
    running = here.session.busy
    await here.session.send(Steer(text=argument))
    return "The running turn reads this at its next step." if running else ""


async def stop(here: CommandContext, argument: str) -> str:
    processes = here.session.workspace.processes
    running = [each for each in await processes.list() if each.status == "running"]
    for each in running:
        await processes.kill(each.id)
    lines = [f"Stopped {each.id}: {one_line(each.command, 60)}" for each in running]
    if here.session.busy:
        await here.session.send(Interrupt())
        lines.append("Stopping the running turn.")
    return "\n".join(lines) or "Nothing runs."


async def background(here: CommandContext, argument: str) -> Outcome:
    if not argument:
        raise UsageError("Use /background TEXT to run it in another session.")
    app, session = here.app, here.session

    async def work() -> str:
        done = await in_background(app, session, argument)
        body, ended = sanitize(done.answer.strip()), done.ended
        ending = explain_ending(ended, answered=bool(body)) if ended else "It was stopped."
        lines = (
            f"↪ done in the background: {one_line(argument, 80)}",
            body,
            sanitize(ending),
            f"/resume {done.session_id} continues it.",
        )
        return "\n".join(filter(None, lines))

    name = one_line(argument, NAMED)
    text = f"Another session works on “{name}”."
    return StartWork(name=name, work=work, text=text, is_answer=True)


async def btw(here: CommandContext, argument: str) -> Outcome:
    if not argument:
        raise UsageError("Use /btw QUESTION; the answer is not added to the conversation.")
    app, session = here.app, here.session

    async def work() -> str:
        try:
            answer = await side_answer(app, session, argument)
        except HermesError as error:
            answer = str(error)
        return f"↪ {one_line(argument, 80)}\n{sanitize(answer.strip())}"

    return StartWork(name=f"by the way: {one_line(argument, NAMED)}", work=work, is_answer=True)


BACKGROUND_COMMANDS = (
    SlashCommand(
        "queue [words]", "Queue a message for after the current turn.", queue, aliases=("q",)
    ),
    SlashCommand("steer words", "Send text to the running turn.", steer),
    SlashCommand("stop", "Stop background processes and the current turn.", stop),
    SlashCommand("background words", "Run a task in another session.", background, aliases=("bg",)),
    SlashCommand("btw question", "Ask a side question; the answer is not kept.", btw),
)
