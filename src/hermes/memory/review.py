"""Lets a side model review a conversation for facts to remember."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from hermes.codec.values import JsonObject
from hermes.core.effects import Allow
from hermes.core.errors import HermesError, ToolError
from hermes.core.events import SessionOpened, ToolFinished, TurnEnded
from hermes.core.messages import (
    AssistantMessage,
    InView,
    Message,
    ToolCall,
    UserMessage,
    user_says,
)
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt
from hermes.core.recorder import Subscription
from hermes.core.session import Session
from hermes.core.tools import Tool, ToolOutput
from hermes.core.transcript import Transcript
from hermes.memory.tools import FLUSH, REVIEW, MemoryToolService, execute, memory, operations_of
from hermes.models.model_ref import IN_PROCESS
from hermes.models.side_model import SideModel
from hermes.policy.rule_setup import policy_for
from hermes.policy.threat_scan import untrusted_in

if TYPE_CHECKING:
    from hermes.memory.service import MemoryService

REVIEW_TASK = "background_review"
REVIEW_ROUNDS = 4
MAX_CHARS = 12_000
SAVED = "💾 Memory updated"
WAITS = "A memory change needs your approval: `hermes memory pending` shows it."
DENIED = "Not allowed without approval, which a review cannot get. Skip it."


class PastSession(NamedTuple):
    """A closed session; another session pays for its review and receives the notices."""

    id: str
    transcript: Transcript
    meter: Meter
    tell: Callable[[str], None]


ReviewedSession = Session | PastSession


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

    async def follow(self, events: Subscription) -> None:
        """Count the turns since the last change of memory, and review when due."""
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
        """Review these messages, or all. The label distinguishes reviews of one turn, so that none
        is executed twice."""
        memories = self._memory.of(self._memory.scope(self._opened))
        known = (await memories.snapshot()).text or "Memory is empty."
        transcript, settings = self._session.transcript, self._memory.run.settings
        reviewed = transcript.messages if messages_to_review is None else messages_to_review
        text = f"{known}\n\n{digest(reviewed)}"
        prompt = Prompt(system=instructions, messages=(user_says(text),), tools=(memory.spec,))
        execute_call, meter = await self.executor(turn_id, label), self._session.meter
        side_model = SideModel(self._memory.models, settings, transcript)
        await side_model.ask_with_tools(self._task, prompt, meter, execute_call, rounds=rounds)

    async def executor(
        self, turn_id: str, label: str = "review"
    ) -> Callable[[int, ToolCall], Awaitable[ToolOutput]]:
        """Return the function that executes calls of the memory tool in a review of this turn."""
        service = await self._memory.review_service(self._session.id, self._opened, turn_id)

        async def execute_call(number: int, call: ToolCall) -> ToolOutput:
            return await self._execute(service, f"{label} {number} {call.id}", call.arguments)

        return execute_call

    async def _execute(
        self, service: MemoryToolService, call_id: str, encoded: JsonObject
    ) -> ToolOutput:
        """Execute the call as the policy allows, and notify the user. Pending changes are reported
        even if notifications are off."""
        arguments = memory.parameters.decode(encoded)
        operations = operations_of(arguments)
        self.check_policy(memory, arguments)
        output = await execute(service, call_id, arguments["target"], operations)
        if output.failed or not output.details.get("changes"):
            return output
        wanted = self._memory.run.settings.display.memory_notifications
        if output.details["held"]:
            self._session.tell(WAITS)
        elif wanted == "verbose":
            texts = [operation.content or operation.old_text for operation in operations]
            self._session.tell(f"{SAVED}: {'; '.join(texts)}")
        elif wanted == "on":
            self._session.tell(SAVED)
        return output

    def check_policy(self, tool: Tool, arguments: JsonObject) -> None:
        """Raises ToolError for effects that the policy does not allow without a question."""
        opened, origins = self._opened, self._session.transcript.origins()
        rules = policy_for(self._memory.run.config, opened.cwd or "/", opened.source)
        seen = InView(lambda: self._session.transcript.messages)
        for effect in tool.effects(NoWorkspace(), arguments):
            if not isinstance(rules.decide(effect, opened.principal, origins, seen), Allow):
                raise ToolError(DENIED)


class NoWorkspace:
    """A workspace for effects that have no folder."""

    cwd = "/"

    def resolve(self, path: str) -> str:
        return path


def is_reviewable(transcript: Transcript) -> bool:
    """Return whether a session may be reviewed: not if it has untrusted text or an offline
    model."""
    return transcript.provider not in IN_PROCESS and not untrusted_in(transcript.origins())


def digest(messages: Sequence[Message]) -> str:
    """Render the last part of the conversation without tool results."""
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
    """Save durable facts of a session before a compaction and ask the memory provider what the
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
