"""Gives a session a name after its first exchange, where somebody stays to read it."""

from __future__ import annotations

import re

from hermes.config.settings import Settings
from hermes.core.commands import Retitle
from hermes.core.errors import HermesError
from hermes.core.events import TurnEnded
from hermes.core.messages import AssistantMessage, Message, UserMessage, user_says
from hermes.core.prompt import Prompt
from hermes.core.recorder import Subscription
from hermes.core.session import Session
from hermes.journal.archive import SessionArchive
from hermes.models.auxiliary import SideModel
from hermes.models.choice import IN_PROCESS
from hermes.models.models import Models

TASK = "title_generation"
NOBODY = "none"
MOST_CHARS = 80
QUOTED = 1_000
REQUEST = (
    "Name the conversation below in three to seven words, in the language of its user. "
    "Answer with the name alone: no quotes, no full stop."
)


class TitleWriter:
    """`auxiliary.title_generation.provider: none` switches it off. Models inside this process are
    too slow, or no models at all, and are not asked."""

    def __init__(self, models: Models, settings: Settings, library: SessionArchive) -> None:
        self._models = models
        self._settings = settings
        self._library = library

    def is_enabled(self, session: Session) -> bool:
        own = self._settings.auxiliary.title_generation
        transcript = session.transcript
        return (
            not transcript.title
            and own.provider != NOBODY
            and transcript.provider not in IN_PROCESS
        )

    async def follow(self, session: Session, events: Subscription) -> None:
        """Wait for the first exchange that went well, and name the session after it unless
        somebody has done so meanwhile."""
        try:
            async for record in events:
                if isinstance(record.event, TurnEnded) and record.event.reason == "done":
                    break
            else:
                return
        finally:
            events.close()
        if self.is_enabled(session):
            await self.name(session)

    async def name(self, session: Session) -> None:
        transcript = session.transcript
        auxiliary = SideModel(
            self._models,
            self._settings,
            main=lambda: (transcript.model, transcript.provider),
            tell=session.tell,
        )
        try:
            reply = await auxiliary.ask(TASK, title_request(transcript.messages), session.meter)
        except HermesError:
            return
        title = clean_title(reply.message.text)
        if title and not transcript.title:
            await session.send(Retitle(title=await self._library.free_title(title)))


def title_request(messages: list[Message]) -> Prompt:
    """The first words of both sides; a name needs no more."""
    said = next((m.text for m in messages if isinstance(m, UserMessage)), "")
    answers = (m.text for m in messages if isinstance(m, AssistantMessage) and m.text)
    answer = next(answers, "")
    text = f"User: {said[:QUOTED]}\n\nAssistant: {answer[:QUOTED]}"
    return Prompt(system=REQUEST, messages=(user_says(text),), effort="low")


def clean_title(text: str) -> str:
    """The first line without quotes, marks and a full stop."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = re.sub(r"^(?:title|name)\s*:\s*", "", lines[0], flags=re.IGNORECASE) if lines else ""
    return first.strip("\"'`*#“”„«» ").rstrip(".")[:MOST_CHARS].strip()
