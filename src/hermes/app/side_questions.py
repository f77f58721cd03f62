"""Work beside a conversation: a session of its own that reports back, and a side question that
nobody will remember."""

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
from hermes.tools.toolbox import wanted_names

if TYPE_CHECKING:
    from hermes.app.app import App

SOURCE = "background"
SIDE_QUESTION = (
    "[A side question about the conversation so far. Answer it from what you see, in a few "
    "sentences, and call no tools; it will not be part of the conversation.]\n\n{question}"
)


class SideAnswer(Value):
    """What came of a session that worked on its own."""

    session_id: str
    answer: str = ""
    ended: TurnEnded | None = None


async def in_background(app: App, session: Session, text: str) -> SideAnswer:
    """One turn of a new session in the same folder. Nobody is there to be asked, so whatever
    needs a question is refused. Cancelling it leaves a session that can be resumed."""
    opened = session.transcript.opened
    cwd = opened.cwd if opened else ""
    other = await app.open(SessionRequest(source=SOURCE, attended=False, cwd=cwd))
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
    """From a copy of the conversation, by the model that holds it. Nothing of it is kept but what
    it costs. HermesError when there is no answer."""
    transcript = session.transcript
    opened = transcript.opened
    assert opened is not None, "every session that is open has begun"
    tools = app.tools.choose(opened.tools, wanted_names(app.settings)).specs
    view = prompt_view(tools, app.settings, source=opened.source, first=prefill_messages(app.run))
    prompt = view(transcript)
    asked = user_says(app.secrecy.text(SIDE_QUESTION.format(question=question)))
    prompt = replace(prompt, messages=(*_wait_for_answer(prompt.messages), asked))
    provider, _ = app.models.connect(
        transcript.model, transcript.provider, session.meter, cause="aside"
    )
    answer = ""
    async with aclosing(provider.reply(prompt)) as stream:
        async for item in stream:
            if isinstance(item, Reply):
                answer = item.message.text
    # Nothing is added but what the call has cost.
    await session.import_messages(())
    if not answer.strip():
        raise HermesError("There was no answer; ask it as a message of its own.")
    return answer


def _wait_for_answer(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Without calls at the end that have no results yet: no model takes those."""
    while messages and isinstance(messages[-1], AssistantMessage) and messages[-1].calls:
        messages = messages[:-1]
    return messages


def _last_text(messages: list[Message]) -> str:
    said = (each.text for each in reversed(messages) if isinstance(each, AssistantMessage))
    return next((text for text in said if text.strip()), "")
