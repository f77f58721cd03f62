"""Commands for messages and work during a running turn: queue, steer, stop, background, btw."""

from __future__ import annotations

from hermes.app.app import App
from hermes.app.side_questions import in_background, mark_reported, new_task_id, side_answer
from hermes.codec.values import replace
from hermes.commands.formatting import explain_ending, one_line, sanitize
from hermes.commands.registry import CommandContext, Outcome, SendMessage, SlashCommand, StartWork
from hermes.core.commands import Interrupt, Steer
from hermes.core.errors import HermesError
from hermes.core.session import Session

NAMED = 40


async def queue(here: CommandContext, argument: str) -> Outcome | str:
    if not argument:
        waiting = [each.message.text for each in here.session.transcript.waiting.values()]
        lines = [f"{n:3}  {one_line(text, 80)}" for n, text in enumerate(waiting, 1)]
        return "\n".join(lines) or "The queue is empty; /queue TEXT adds a message."
    return SendMessage(text=argument)


async def steer(here: CommandContext, argument: str) -> str | None:
    if not argument:
        return None
    running = here.session.busy
    await here.session.send(Steer(text=argument))
    return "The running turn reads this at its next step." if running else ""


async def stop(here: CommandContext, argument: str) -> str:
    processes = here.session.workspace.processes
    running = [each for each in await processes.list() if each.status == "running"]
    for each in running:
        await processes.kill(each.id)
    lines = [f"Stopped {each.id}: {one_line(each.command, 60)}" for each in running]
    if here.background_work is not None:
        here.app.shared.stopped_tasks.update(here.background_work.task_ids)
        lines += [f"Stopped {one_line(name, 60)}" for name in here.background_work.names]
        here.background_work.cancel()
    if here.session.busy:
        await here.session.send(Interrupt())
        lines.append("Stopping the running turn.")
    return "\n".join(lines) or "Nothing is running."


async def agents(here: CommandContext, argument: str) -> str:
    lines = running_work(here.app, here.session)
    lines += [
        f"{each.id}  {one_line(each.command, 60)}"
        for each in await here.session.workspace.processes.list()
        if each.status == "running" and here.app.background.delegations.find(each.id) is None
    ]
    if here.background_work is not None:
        lines += [f"background  {one_line(name, 60)}" for name in here.background_work.names]
    return "\n".join(lines) or "Nothing is running."


def running_work(app: App, session: Session) -> list[str]:
    """The child sessions of a session that run in this process, one line each."""
    now = app.context.world.clock.now()
    return [
        f"{'  ' * (run.task.depth - 1)}{run.task.id}  {now - run.started_at:.0f} s  "
        f"{one_line(run.task.text, 50)}  {one_line(run.line, 40)}"
        for run in app.background.delegations.tree_of(session.id)
    ]


async def background(here: CommandContext, argument: str) -> Outcome | None:
    if not argument:
        return None
    task_id = new_task_id(here.app.context.world)
    started = start_task(here.app, here.session, argument, task_id)
    text = f"Another session is working on “{started.name}”."
    return replace(started, text=text)


def start_task(app: App, session: Session, argument: str, task_id: str) -> StartWork:
    """Run a task in a session of its own, or continue it, and report its answer."""

    async def work() -> str:
        done = await in_background(app, session, argument, task_id)
        await mark_reported(app, task_id)
        body, ended = sanitize(done.answer.strip()), done.ended
        ending = explain_ending(ended, answered=bool(body)) if ended else "The task was stopped."
        lines = (
            f"↪ finished in the background: {one_line(argument, 80)}",
            body,
            sanitize(ending),
            f"/resume {done.session_id} opens its session.",
        )
        return "\n".join(filter(None, lines))

    name = one_line(argument, NAMED)
    return StartWork(name=name, work=work, is_answer=True, task_id=task_id)


async def btw(here: CommandContext, argument: str) -> Outcome | None:
    if not argument:
        return None
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
        "queue [TEXT]",
        "Send a message after the running turn; without arguments, list queued messages.",
        queue,
        aliases=("q",),
    ),
    SlashCommand("steer TEXT", "Add text to the running turn, which reads it next.", steer),
    SlashCommand("stop", "Stop the turn, its sub-agents, processes and background tasks.", stop),
    SlashCommand("agents", "List running sub-agents, processes and background tasks.", agents),
    SlashCommand("background TEXT", "Run a task in another session.", background, aliases=("bg",)),
    SlashCommand("btw QUESTION", "Ask a question without adding it to the conversation.", btw),
)
