"""Background sessions that report back, and side questions that are not stored."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from hermes.codec.values import Value, replace
from hermes.context.prompting import prefill_messages, prompt_view
from hermes.core.commands import Say
from hermes.core.errors import HermesError
from hermes.core.events import TurnEnded
from hermes.core.messages import AssistantMessage, Message, user_says
from hermes.core.prompt import Reply
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest

if TYPE_CHECKING:
    from hermes.app.app import App

SOURCE = "background"
SIDE_QUESTION = (
    "[A side question about the conversation so far. Answer it from what you see, in a few "
    "sentences, without tool calls; it will not be part of the conversation.]\n\n{question}"
)


class SideAnswer(Value):
    """The result of a background session."""

    session_id: str
    answer: str = ""
    ended: TurnEnded | None = None


async def in_background(app: App, session: Session, text: str) -> SideAnswer:
    """Run one turn of a new session in the same folder. No user is present, so effects that need
    approval are refused. A cancelled session can be resumed."""
    opened = session.transcript.opened
    cwd = opened.cwd if opened else ""
    request = SessionRequest(source=SOURCE, attended=False, cwd=cwd)
    if opened is not None:
        # The task may not do more than the session that starts it.
        request = replace(request, principal=opened.principal, person=opened.person)
    other = await app.open(request)
    ended: TurnEnded | None = None
    try:
        async with aclosing(other.ask(Say(text=text))) as records:
            async for record in records:
                ended = record.event if isinstance(record.event, TurnEnded) else None
        answer = _last_text(other.transcript.messages)
    finally:
        await app.close_session(other)
    return SideAnswer(session_id=other.id, answer=answer, ended=ended)


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
