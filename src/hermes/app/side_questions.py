"""Background sessions that report back, and side questions that are not stored."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

from hermes.codec.values import Value, replace
from hermes.context.prompting import prefill_messages, prompt_view
from hermes.core.commands import Say
from hermes.core.errors import HermesError
from hermes.core.events import TurnEnded
from hermes.core.messages import AssistantMessage, Message, user_says
from hermes.core.prompt import Reply
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.delegation.background import owed_children
from hermes.delegation.identity import BACKGROUND, REPORTED, STOPPED, TASK_KEY
from hermes.delegation.outcome import read_outcome

if TYPE_CHECKING:
    from hermes.app.app import App

SIDE_QUESTION = (
    "[A side question about the conversation so far. Answer it from what you see, in a few "
    "sentences, without tool calls; it will not be part of the conversation.]\n\n{question}"
)


class SideAnswer(Value):
    """The result of a background session."""

    session_id: str
    answer: str = ""
    ended: TurnEnded | None = None


class OwedTask(NamedTuple):
    """A task of a person that an earlier process left unfinished or unreported."""

    id: str
    text: str


def new_task_id(world: World) -> str:
    stamp = time.strftime("%H%M%S", time.localtime(world.clock.now()))
    return f"bg_{stamp}_{world.chance.getrandbits(24):06x}"


async def in_background(app: App, session: Session, text: str, task_id: str = "") -> SideAnswer:
    """Run one turn of a session of its own in the same folder, or continue the one with this id. No
    user is present, so effects that need approval are refused. A cancelled session is suspended,
    unless it is in `stopped_tasks`. The caller reports the answer, then calls `mark_reported`."""
    task_id = task_id or new_task_id(app.context.world)
    opened, is_new = session.transcript.opened, not await app.archive.exists(task_id)
    request = SessionRequest(
        source=BACKGROUND,
        attended=False,
        cwd=opened.cwd if opened else "",
        parent=session.id if await app.archive.exists(session.id) else "",
        session_id=task_id if is_new else "",
        resume="" if is_new else task_id,
    )
    if opened is not None:
        # The task may not do more than the session that starts it.
        request = replace(request, principal=opened.principal, person=opened.person)
    other = await app.open(request)
    try:
        if is_new:
            await other.send(Say(text=text, key=TASK_KEY))
        other.continue_unfinished()
        await other.wait_until_idle()
    except asyncio.CancelledError:
        is_stopped = task_id in app.shared.stopped_tasks
        await app.close_session(other, suspend=not is_stopped)
        if is_stopped:
            await mark_reported(app, task_id, STOPPED)
        raise
    except BaseException:
        await app.close_session(other)
        raise
    answer = _last_text(other.transcript.messages)
    await app.close_session(other)
    outcome = read_outcome(await app.journal.read(task_id))
    return SideAnswer(session_id=task_id, answer=answer, ended=outcome.ended)


async def mark_reported(app: App, task_id: str, reason: str = REPORTED) -> None:
    """Note that the answer of a background session was shown."""
    app.shared.stopped_tasks.discard(task_id)
    await app.background.close_record(task_id, reason)


async def owed_tasks(app: App, session: Session) -> tuple[OwedTask, ...]:
    """Return the tasks of this session's person that have not reported."""
    found: list[OwedTask] = []
    for owed in await owed_children(app.journal, session.id):
        received = read_outcome(await app.journal.read(owed.id)).task
        is_open = app.find_session(owed.id) is not None
        if received is not None and received.message.origin == "user" and not is_open:
            found.append(OwedTask(owed.id, received.message.text))
    return tuple(found)


async def side_answer(app: App, session: Session, question: str) -> str:
    """Ask the session's model on a copy of the conversation. Only the cost is recorded. Raises
    HermesError when there is no answer."""
    transcript = session.transcript
    opened = transcript.opened
    assert opened is not None, "an open session has an opening event"
    tools = app.tools.choose(opened.tools).specs
    view = prompt_view(
        tools, app.context.settings, source=opened.source, first=prefill_messages(app.context)
    )
    prompt = view(transcript)
    message = user_says(app.context.redactor.text(SIDE_QUESTION.format(question=question)))
    prompt = replace(prompt, messages=(*_without_open_calls(prompt.messages), message))
    provider, _ = app.models.connect(
        transcript.model, transcript.provider, session.meter, cause="aside"
    )
    answer = ""
    async with aclosing(provider.reply(prompt)) as stream:
        async for item in stream:
            if isinstance(item, Reply):
                answer = item.message.text
    # Adds no messages, only the cost of the call.
    await session.import_messages(())
    if not answer.strip():
        raise HermesError("There was no answer; ask in a regular message.")
    return answer


def _without_open_calls(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Remove trailing calls that have no results: no model accepts those."""
    while messages and isinstance(messages[-1], AssistantMessage) and messages[-1].calls:
        messages = messages[:-1]
    return messages


def _last_text(messages: list[Message]) -> str:
    texts = (each.text for each in reversed(messages) if isinstance(each, AssistantMessage))
    return next((text for text in texts if text.strip()), "")
