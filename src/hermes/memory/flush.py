"""What is saved of a conversation before its older part gives way to a summary."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.core.events import SessionOpened
from hermes.core.messages import Message, UserMessage
from hermes.core.session import Session
from hermes.memory.tools import flush_request
from hermes.models.choice import IN_PROCESS
from hermes.policy.threat_scan import untrusted_in

if TYPE_CHECKING:
    from hermes.memory.service import MemoryService

TASK = "flush_memories"
TOOL = "memory"
# Whoever waits for an answer waits for this too.
SECONDS = 45.0
MOST_ROUNDS = 2


class MemoryFlush:
    """For one session: durable facts go to memory, and what else models the user may say what the
    summary must keep. Whatever goes wrong, the conversation is shortened all the same."""

    def __init__(self, memory: MemoryService, session_id: str, opened: SessionOpened) -> None:
        self._memory = memory
        self._session_id = session_id
        self._opened = opened

    async def __call__(self, messages: tuple[Message, ...]) -> str:
        session = self._memory.find_session(self._session_id)
        words = self._words(session)
        if words:
            try:
                async with asyncio.timeout(SECONDS):
                    await self._save(session, words, messages)
            except (HermesError, TimeoutError):
                # Nobody asked for it, so nobody is told that it did not work.
                pass
        if not self._memory.run.settings.memory.provider:
            return ""
        return await self._memory.user_model.to_keep(self._session_id, messages)

    def _words(self, session: Session) -> str:
        """What to ask; "" where there is nothing to save or nobody to do it."""
        transcript, opened = session.transcript, self._opened
        if TOOL not in opened.tools or not self._memory.scope(opened):
            return ""
        if transcript.provider in IN_PROCESS or untrusted_in(transcript.origins()):
            return ""
        turns = sum(isinstance(m, UserMessage) and m.origin == "user" for m in transcript.messages)
        return flush_request(turns, self._memory.run.settings.memory.flush_min_turns)

    async def _save(self, session: Session, words: str, messages: tuple[Message, ...]) -> None:
        from hermes.memory.review import MemoryReview

        review = MemoryReview(self._memory, session, self._opened, task=TASK)
        await review.review(
            words,
            session.transcript.turn_id,
            messages,
            label=f"flush {len(session.transcript.compactions)}",
            rounds=MOST_ROUNDS,
        )
