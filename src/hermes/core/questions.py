"""Questions to a person: recorded in the journal, open while the turn runs."""

from __future__ import annotations

import asyncio

from hermes.core.effects import Ask, Effect
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    QuestionAnswered,
    QuestionAsked,
)
from hermes.core.recorder import Recorder
from hermes.core.world import World

DENY = "deny"
# The longest reason that is passed on to the model.
MOST_CHARS = 1_000


class Questions:
    """The questions of one session. When it is unattended, every approval is denied at once."""

    def __init__(
        self, recorder: Recorder, world: World, *, attended: bool, approval_seconds: float
    ) -> None:
        self.attended = attended
        self._recorder = recorder
        self._world = world
        self._approval_seconds = approval_seconds
        self._open: dict[str, asyncio.Future[tuple[str, str, str]]] = {}

    def answer(self, question_id: str, text: str, by: str, reason: str = "") -> bool:
        """False when no such question is open."""
        future = self._open.get(question_id)
        if future is None or future.done():
            return False
        future.set_result((text, by, reason))
        return True

    async def approve(
        self,
        call_id: str,
        effect: Effect,
        asked: Ask,
        stop: asyncio.Event,
        lasting: tuple[str, ...] = (),
    ) -> tuple[str, str, str]:
        """The choice ("deny" or a scope), who made it, and the reason if there is one."""
        question = ApprovalAsked(
            id=self._world.new_id("ask"),
            call_id=call_id,
            effect=effect,
            reason=asked.reason,
            category=asked.category,
            scopes=asked.scopes,
            expires_seconds=self._approval_seconds,
            lasting=lasting,
        )
        await self._publish(question)
        choice, by, reason = await self._wait(question.id, question.expires_seconds, stop)
        if choice not in asked.scopes:
            choice = DENY
        reason = reason[:MOST_CHARS]
        await self._recorder.commit(
            ApprovalAnswered(id=question.id, choice=choice, by=by, reason=reason)
        )
        return choice, by, reason

    async def ask(
        self,
        call_id: str,
        text: str,
        choices: tuple[str, ...],
        seconds: float,
        stop: asyncio.Event,
        *,
        secret: bool = False,
    ) -> str | None:
        """The answer, or None when the session is unattended or time is up. Of a `secret` answer,
        the journal only stores whether there was one."""
        if not self.attended:
            return None
        question = QuestionAsked(
            id=self._world.new_id("ask"),
            call_id=call_id,
            question=text,
            choices=choices,
            expires_seconds=seconds,
            secret=secret,
        )
        await self._publish(question)
        try:
            words, by, _ = await self._wait(question.id, seconds, stop)
        except asyncio.CancelledError:
            self._recorder.note(QuestionAnswered(id=question.id, text="", by="stop"))
            raise
        told = "***" if secret and words else words
        await self._recorder.commit(QuestionAnswered(id=question.id, text=told, by=by))
        return words or None

    async def _publish(self, question: ApprovalAsked | QuestionAsked) -> None:
        # Opened before the commit shows the question: an answer may come at once.
        self._open[question.id] = asyncio.get_running_loop().create_future()
        try:
            await self._recorder.commit(question)
        except BaseException:
            del self._open[question.id]
            raise

    async def _wait(
        self, question_id: str, seconds: float, stop: asyncio.Event
    ) -> tuple[str, str, str]:
        future = self._open[question_id]
        late = asyncio.ensure_future(self._world.clock.sleep(seconds))
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((future, late, stopping), return_when=asyncio.FIRST_COMPLETED)
            if future.done():
                return future.result()
            return "", "stop" if stopping.done() else "time", ""
        finally:
            late.cancel()
            stopping.cancel()
            del self._open[question_id]


def expire_question(asked: ApprovalAsked | QuestionAsked) -> ApprovalAnswered | QuestionAnswered:
    """The end of a question that was open when its process ended."""
    if isinstance(asked, ApprovalAsked):
        return ApprovalAnswered(id=asked.id, choice=DENY, by="restart")
    return QuestionAnswered(id=asked.id, text="", by="restart")
