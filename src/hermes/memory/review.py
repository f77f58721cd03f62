"""Lets a side model review a conversation for facts to remember."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol

from hermes.codec.json import DecodeError
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
from hermes.core.tools import ToolOutput
from hermes.core.transcript import Transcript
from hermes.memory.entries import ChangeSource
from hermes.memory.service import APPROVAL, message_number
from hermes.memory.tools import (
    FLUSH,
    REVIEW,
    CallFacts,
    MemoryToolService,
    execute,
    memory,
    operations_of,
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

    @property
    def _memories(self) -> Memories:
        """The memories of the person in the session."""
        return self._memory.of(self._memory.scope(self._opened))

    async def follow(self, events: Subscription) -> None:
        """Counts the turns since the last change of memory, and reviews when due."""
        turns, interval = 0, self._memory.run.settings.memory.nudge_interval
        try:
            async for record in events:
                event = record.event
                if isinstance(event, ToolFinished) and event.result.name == memory.name:
                    turns = 0
                if not isinstance(event, TurnEnded) or event.reason != "done":
                    continue
                turns += 1
                if 0 < interval <= turns and is_reviewable(self._session.transcript):
                    turns = 0
                    # The user did not request the review, so a failure is not reported.
                    with suppress(HermesError):
                        await self.review(REVIEW, record.turn_id)
        finally:
            events.close()

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
        transcript, settings = self._session.transcript, self._memory.run.settings
        reviewed = transcript.messages if messages_to_review is None else messages_to_review
        messages: tuple[Message, ...] = (user_says(f"{known}\n\n{digest(reviewed)}"),)
        side_model = SideModel(self._memory.models, settings, transcript)
        service = await self.tool_service(turn_id)
        for number in range(rounds):
            prompt = Prompt(system=instructions, messages=messages, tools=(memory.spec,))
            reply = await side_model.ask(self._task, prompt, self._session.meter)
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
        """Executes the call as the policy allows, and notifies the user. Pending changes are
        reported even if notifications are off."""
        if call.name != memory.name or call.broken:
            raise ToolError(f"Only {memory.name} can be called now.")
        arguments = memory.parameters.decode(call.arguments)
        operations = operations_of(arguments)
        run, opened = self._memory.run, self._opened
        rules = rules_for(run.config, opened.cwd or "/", opened.source)
        origins = self._session.transcript.origins()
        for effect in memory.effects(NoWorkspace(), arguments):
            if not isinstance(rules.decide(effect, opened.principal, origins), Allow):
                raise ToolError(DENIED)
        output = await execute(service, f"{prefix} {call.id}", arguments["target"], operations)
        if output.failed or not output.details.get("changes"):
            return output
        wanted = run.settings.display.memory_notifications
        if output.details["held"]:
            self._session.tell(WAITS)
        elif wanted == "verbose":
            texts = [operation.content or operation.old_text for operation in operations]
            self._session.tell(f"{SAVED}: {'; '.join(texts)}")
        elif wanted == "on":
            self._session.tell(SAVED)
        return output

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

        on_change = partial(self._memory.notify_change, self._session.id)
        return MemoryToolService(
            self._memories, describe_call, targets=self._memory.targets, on_change=on_change
        )


class NoWorkspace:
    """A workspace for effects that have no folder."""

    cwd = "/"

    def resolve(self, path: str) -> str:
        return path


def is_reviewable(transcript: Transcript) -> bool:
    """Sessions with untrusted text and sessions of offline models are not reviewed."""
    return transcript.provider not in IN_PROCESS and not untrusted_in(transcript.origins())


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


async def flush_memory(
    memory: MemoryService, session_id: str, opened: SessionOpened, messages: tuple[Message, ...]
) -> str:
    """Saves durable facts of a session before a compaction and asks the memory provider what the
    summary must contain. Failures do not prevent the compaction."""
    session, settings = memory.find_session(session_id), memory.run.settings.memory
    transcript = session.transcript
    turns = sum(isinstance(m, UserMessage) and m.origin == "user" for m in transcript.messages)
    is_due = 0 < settings.flush_min_turns <= turns
    if is_due and TOOL in opened.tools and memory.scope(opened) and is_reviewable(transcript):
        # The user did not request the flush, so a failure is not reported.
        with suppress(HermesError, TimeoutError):
            async with asyncio.timeout(SECONDS):
                await MemoryReview(memory, session, opened, task=FLUSH_TASK).review(
                    FLUSH,
                    transcript.turn_id,
                    messages,
                    label=f"flush {len(transcript.compactions)}",
                    rounds=FLUSH_ROUNDS,
                )
    return await memory.user_model.summary_text(session_id, messages) if settings.provider else ""
