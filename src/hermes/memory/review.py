"""Lets a side model review a conversation for facts to remember."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from hermes.codec.json import DecodeError
from hermes.codec.values import JsonObject
from hermes.core.effects import Allow
from hermes.core.errors import HermesError, ToolError
from hermes.core.events import SessionOpened, ToolFinished, TurnEnded
from hermes.core.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
    user_says,
)
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt
from hermes.core.recorder import Subscription
from hermes.core.session import Session
from hermes.core.tools import ToolOutput
from hermes.core.transcript import Transcript
from hermes.memory.entries import ChangeSource
from hermes.memory.service import APPROVAL, message_number
from hermes.memory.tools import (
    CallFacts,
    MemoryToolService,
    execute,
    flush_request,
    memory,
    operations_of,
    review_request,
)
from hermes.models.model_ref import IN_PROCESS
from hermes.models.side_model import SideModel
from hermes.policy.rule_setup import rules_for
from hermes.policy.threat_scan import untrusted_in

if TYPE_CHECKING:
    from hermes.memory.memories import Memories
    from hermes.memory.service import MemoryService

REVIEW_TASK = "background_review"
REVIEW_ROUNDS = 4
QUOTED = 12_000
SAVED = "💾 Memory updated"
WAITS = "Something waits to be remembered: `hermes memory pending` shows it."
DENIED = "Not allowed, and nobody is asked now. Leave it."


class ReviewedSession(Protocol):
    """A session that is looked back upon: one that is open, or one of the past. Costs are booked
    by `meter`."""

    @property
    def id(self) -> str: ...
    @property
    def transcript(self) -> Transcript: ...
    @property
    def meter(self) -> Meter: ...
    @property
    def tell(self) -> Callable[[str], None]: ...


class MemoryReview:
    """For one session. It may call the memory tool and nothing else; nothing that takes a question
    is done, and where strangers' words are in view, nothing at all."""

    def __init__(
        self,
        memory: MemoryService,
        session: ReviewedSession,
        opened: SessionOpened,
        *,
        task: str = REVIEW_TASK,
    ) -> None:
        self._memory = memory
        self._session = session
        self._opened = opened
        self._task = task
        self._turns = 0

    @property
    def _memories(self) -> Memories:
        """Of whoever speaks in the session."""
        return self._memory.of(self._memory.scope(self._opened))

    async def follow(self, events: Subscription) -> None:
        """Count the turns since memory was last changed, and look back when it is time."""
        try:
            async for record in events:
                event = record.event
                if isinstance(event, ToolFinished) and event.result.name == memory.name:
                    self._turns = 0
                if isinstance(event, TurnEnded) and event.reason == "done":
                    await self._on_turn_end(record.turn_id)
        finally:
            events.close()

    async def _on_turn_end(self, turn_id: str) -> None:
        self._turns += 1
        words = review_request(self._turns, self._memory.run.settings.memory.nudge_interval)
        transcript = self._session.transcript
        if not words or transcript.provider in IN_PROCESS or untrusted_in(transcript.origins()):
            return
        self._turns = 0
        try:
            await self.review(words, turn_id)
        except HermesError:
            # Nobody asked for it, so nobody is told that it did not work.
            return

    async def review(
        self,
        words: str,
        turn_id: str,
        looked_at: Sequence[Message] | None = None,
        *,
        label: str = "review",
        rounds: int = REVIEW_ROUNDS,
    ) -> None:
        """At these messages, or at all of them. The label tells one look of a turn from another, so
        that none is carried out twice."""
        known = (await self._memories.snapshot()).text or "Memory is empty."
        said = digest(self._session.transcript.messages if looked_at is None else looked_at)
        messages: tuple[Message, ...] = (user_says(f"{known}\n\n{said}"),)
        desk = await self.tool_service(turn_id)
        for number in range(rounds):
            prompt = Prompt(system=words, messages=messages, tools=(memory.spec,))
            reply = await self._auxiliary().ask(self._task, prompt, self._session.meter)
            if not reply.message.calls:
                return
            place = f"{label} {number}"
            results = [await self.answer(desk, place, call) for call in reply.message.calls]
            messages = (*messages, reply.message, ToolMessage(results=tuple(results)))

    async def answer(self, desk: MemoryToolService, place: str, call: ToolCall) -> ToolResult:
        try:
            output = await self._carry_out(desk, place, call)
        except (ToolError, DecodeError) as error:
            output = ToolOutput.text(str(error), failed=True)
        return ToolResult(call_id=call.id, name=call.name, parts=output.parts, failed=output.failed)

    async def _carry_out(self, desk: MemoryToolService, place: str, call: ToolCall) -> ToolOutput:
        if call.name != memory.name or call.broken:
            raise ToolError(f"Only {memory.name} can be called now.")
        arguments = memory.parameters.decode(call.arguments)
        wishes = operations_of(arguments)
        self._check(arguments)
        output = await execute(desk, f"{place} {call.id}", arguments["target"], wishes)
        if not output.failed and output.details.get("changes"):
            self._tell([wish.content or wish.old_text for wish in wishes], output.details["held"])
        return output

    def _tell(self, texts: Sequence[str], held: str) -> None:
        """What waits for a person is told even to one who wants to hear of nothing else."""
        wanted = self._memory.run.settings.display.memory_notifications
        if held:
            self._session.tell(WAITS)
        elif wanted == "verbose":
            self._session.tell(f"{SAVED}: {'; '.join(texts)}")
        elif wanted == "on":
            self._session.tell(SAVED)

    def _check(self, arguments: JsonObject) -> None:
        """The rules of the home hold here too."""
        rules = rules_for(self._memory.run.config, self._opened.cwd or "/", self._opened.source)
        origins = self._session.transcript.origins()
        for effect in memory.effects(_NOWHERE, arguments):
            if not isinstance(rules.decide(effect, self._opened.principal, origins), Allow):
                raise ToolError(DENIED)

    async def tool_service(self, turn_id: str) -> MemoryToolService:
        """Changes have the words that the turn answered as their source."""
        records = await self._memory.journal.read(self._session.id)
        n = message_number(records, turn_id)
        held = APPROVAL if self._memory.run.settings.memory.write_approval else ""

        async def witness(call_id: str) -> CallFacts:
            source = ChangeSource(
                kind="review",
                session_id=self._session.id,
                turn_id=turn_id,
                n=n,
                call_id=call_id,
                person=self._opened.person or self._opened.principal,
                surface=self._opened.source,
            )
            return CallFacts(
                source=source, key=f"{self._session.id} {turn_id} {call_id}", held=held
            )

        remembering = self._memory
        heard = partial(remembering.notify_change, self._session.id)
        return MemoryToolService(self._memories, witness, targets=remembering.targets, heard=heard)

    def _auxiliary(self) -> SideModel:
        transcript = self._session.transcript
        return SideModel(
            self._memory.models,
            self._memory.run.settings,
            main=lambda: (transcript.model, transcript.provider),
            tell=lambda _text: None,
        )


class NoWorkspace:
    """Where effects of memory take place: in no folder."""

    cwd = "/"

    def resolve(self, path: str) -> str:
        return path


_NOWHERE = NoWorkspace()


def digest(messages: Sequence[Message]) -> str:
    """Who said what, as much of the end as fits; what tools gave is left out."""
    lines: list[str] = []
    for message in messages:
        match message:
            case UserMessage(origin="user"):
                lines.append(f"User: {message.text}")
            case AssistantMessage() if message.text:
                lines.append(f"Assistant: {message.text}")
            case _:
                continue
    return "\n\n".join(lines)[-QUOTED:]


FLUSH_TASK = "flush_memories"
TOOL = "memory"
# Whoever waits for an answer waits for this too.
SECONDS = 45.0
FLUSH_ROUNDS = 2


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
        review = MemoryReview(self._memory, session, self._opened, task=FLUSH_TASK)
        await review.review(
            words,
            session.transcript.turn_id,
            messages,
            label=f"flush {len(session.transcript.compactions)}",
            rounds=FLUSH_ROUNDS,
        )
