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
MAX_CHARS = 12_000
SAVED = "💾 Memory updated"
WAITS = "A memory change needs your approval: `hermes memory pending` shows it."
DENIED = "Not allowed without approval, which a review cannot get. Skip it."


class ReviewedSession(Protocol):
    """A session under review, open or closed. Costs are booked on `meter`."""

    @property
    def id(self) -> str: ...
    @property
    def transcript(self) -> Transcript: ...
    @property
    def meter(self) -> Meter: ...
    @property
    def tell(self) -> Callable[[str], None]: ...


class MemoryReview:
    """Reviews one session. Only the memory tool is offered; changes that need approval are refused,
    and sessions with untrusted text are not reviewed."""

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
        """The memories of the person in the session."""
        return self._memory.of(self._memory.scope(self._opened))

    async def follow(self, events: Subscription) -> None:
        """Counts the turns since the last change of memory, and reviews when due."""
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
        instructions = review_request(self._turns, self._memory.run.settings.memory.nudge_interval)
        transcript = self._session.transcript
        if (
            not instructions
            or transcript.provider in IN_PROCESS
            or untrusted_in(transcript.origins())
        ):
            return
        self._turns = 0
        try:
            await self.review(instructions, turn_id)
        except HermesError:
            # The user did not request the review, so a failure is not reported.
            return

    async def review(
        self,
        instructions: str,
        turn_id: str,
        messages_to_review: Sequence[Message] | None = None,
        *,
        label: str = "review",
        rounds: int = REVIEW_ROUNDS,
    ) -> None:
        """Reviews these messages, or all. The label distinguishes reviews of one turn, so that none
        is executed twice."""
        known = (await self._memories.snapshot()).text or "Memory is empty."
        text = digest(
            self._session.transcript.messages if messages_to_review is None else messages_to_review
        )
        messages: tuple[Message, ...] = (user_says(f"{known}\n\n{text}"),)
        service = await self.tool_service(turn_id)
        for number in range(rounds):
            prompt = Prompt(system=instructions, messages=messages, tools=(memory.spec,))
            reply = await self._auxiliary().ask(self._task, prompt, self._session.meter)
            if not reply.message.calls:
                return
            prefix = f"{label} {number}"
            results = [await self.answer(service, prefix, call) for call in reply.message.calls]
            messages = (*messages, reply.message, ToolMessage(results=tuple(results)))

    async def answer(self, service: MemoryToolService, prefix: str, call: ToolCall) -> ToolResult:
        try:
            output = await self._execute(service, prefix, call)
        except (ToolError, DecodeError) as error:
            output = ToolOutput.text(str(error), failed=True)
        return ToolResult(call_id=call.id, name=call.name, parts=output.parts, failed=output.failed)

    async def _execute(self, service: MemoryToolService, prefix: str, call: ToolCall) -> ToolOutput:
        if call.name != memory.name or call.broken:
            raise ToolError(f"Only {memory.name} can be called now.")
        arguments = memory.parameters.decode(call.arguments)
        operations = operations_of(arguments)
        self._check(arguments)
        output = await execute(service, f"{prefix} {call.id}", arguments["target"], operations)
        if not output.failed and output.details.get("changes"):
            self._tell(
                [operation.content or operation.old_text for operation in operations],
                output.details["held"],
            )
        return output

    def _tell(self, texts: Sequence[str], held: str) -> None:
        """Notifies the user. Pending changes are reported even if notifications are off."""
        wanted = self._memory.run.settings.display.memory_notifications
        if held:
            self._session.tell(WAITS)
        elif wanted == "verbose":
            self._session.tell(f"{SAVED}: {'; '.join(texts)}")
        elif wanted == "on":
            self._session.tell(SAVED)

    def _check(self, arguments: JsonObject) -> None:
        """Applies the policy."""
        rules = rules_for(self._memory.run.config, self._opened.cwd or "/", self._opened.source)
        origins = self._session.transcript.origins()
        for effect in memory.effects(_NO_WORKSPACE, arguments):
            if not isinstance(rules.decide(effect, self._opened.principal, origins), Allow):
                raise ToolError(DENIED)

    async def tool_service(self, turn_id: str) -> MemoryToolService:
        """Returns a memory service whose changes have the turn's message as their source."""
        records = await self._memory.journal.read(self._session.id)
        n = message_number(records, turn_id)
        held = APPROVAL if self._memory.run.settings.memory.write_approval else ""

        async def describe_call(call_id: str) -> CallFacts:
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

        memory_service = self._memory
        on_change = partial(memory_service.notify_change, self._session.id)
        return MemoryToolService(
            self._memories, describe_call, targets=memory_service.targets, on_change=on_change
        )

    def _auxiliary(self) -> SideModel:
        transcript = self._session.transcript
        return SideModel(
            self._memory.models,
            self._memory.run.settings,
            main=lambda: (transcript.model, transcript.provider),
            tell=lambda _text: None,
        )


class NoWorkspace:
    """A workspace for effects that have no folder."""

    cwd = "/"

    def resolve(self, path: str) -> str:
        return path


_NO_WORKSPACE = NoWorkspace()


def digest(messages: Sequence[Message]) -> str:
    """Renders the last part of the conversation without tool results."""
    lines: list[str] = []
    for message in messages:
        match message:
            case UserMessage(origin="user"):
                lines.append(f"User: {message.text}")
            case AssistantMessage() if message.text:
                lines.append(f"Assistant: {message.text}")
            case _:
                continue
    return "\n\n".join(lines)[-MAX_CHARS:]


FLUSH_TASK = "flush_memories"
TOOL = "memory"
# The user waits for the flush before the answer.
SECONDS = 45.0
FLUSH_ROUNDS = 2


class MemoryFlush:
    """Saves durable facts of one session before a compaction and asks the memory provider what the
    summary must contain. Failures do not prevent the compaction."""

    def __init__(self, memory: MemoryService, session_id: str, opened: SessionOpened) -> None:
        self._memory = memory
        self._session_id = session_id
        self._opened = opened

    async def __call__(self, messages: tuple[Message, ...]) -> str:
        session = self._memory.find_session(self._session_id)
        instructions = self._instructions(session)
        if instructions:
            try:
                async with asyncio.timeout(SECONDS):
                    await self._save(session, instructions, messages)
            except (HermesError, TimeoutError):
                # The user did not request the flush, so a failure is not reported.
                pass
        if not self._memory.run.settings.memory.provider:
            return ""
        return await self._memory.user_model.summary_text(self._session_id, messages)

    def _instructions(self, session: Session) -> str:
        """Returns the instructions, or "" if no flush is due or possible."""
        transcript, opened = session.transcript, self._opened
        if TOOL not in opened.tools or not self._memory.scope(opened):
            return ""
        if transcript.provider in IN_PROCESS or untrusted_in(transcript.origins()):
            return ""
        turns = sum(isinstance(m, UserMessage) and m.origin == "user" for m in transcript.messages)
        return flush_request(turns, self._memory.run.settings.memory.flush_min_turns)

    async def _save(
        self, session: Session, instructions: str, messages: tuple[Message, ...]
    ) -> None:
        review = MemoryReview(self._memory, session, self._opened, task=FLUSH_TASK)
        await review.review(
            instructions,
            session.transcript.turn_id,
            messages,
            label=f"flush {len(session.transcript.compactions)}",
            rounds=FLUSH_ROUNDS,
        )
