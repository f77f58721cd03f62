"""Recorded answers: model replies, approvals, compactions and hook verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from contextvars import copy_context
from typing import cast, get_args

from hermes.codec.values import replace
from hermes.context.budget import EngineDeps
from hermes.context.engine import BuiltInEngine
from hermes.core import errors
from hermes.core.effects import Allow, Ask, Decision, Effect, Principal, Scope
from hermes.core.errors import HermesError, ProviderError, Reason
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallSettled,
    Compacted,
    DurableEvent,
    HookAnswered,
    MessageReceived,
    ModelCalled,
    ReplyAdded,
    TurnEnded,
)
from hermes.core.gate import DENY
from hermes.core.hooks import (
    BEFORE_TURN,
    FINAL_ANSWER_HOOK,
    CallOutcome,
    HookVerdict,
    TurnHooks,
    verdict_of,
)
from hermes.core.messages import AssistantMessage, Text, ToolCall, ToolResult, Usage
from hermes.core.metering import CHAT, Metered
from hermes.core.ports import ConversationText, Meter, Policy, Provider
from hermes.core.prompt import Delta, Prompt, Reply, TextDelta
from hermes.core.session_deps import CompactionRequest
from hermes.core.transcript import Transcript
from hermes.core.world import World
from hermes.providers.profile import FREE
from hermes.replay.expected_events import ExpectedEvents
from hermes.replay.inputs import (
    TURN_CAUSES,
    cap_reached,
    interrupted_text,
    is_interrupted,
    stopped_in_call,
)
from hermes.replay.sync_points import Diverged, SyncPoints


class OutsideProvider:
    """Calls `inner` in the context in which this object was created, outside the replay."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner
        self._context = copy_context()

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        items: asyncio.Queue[Delta | Reply | HermesError | None] = asyncio.Queue()

        async def ask() -> None:
            try:
                async with aclosing(self._inner.reply(prompt)) as replies:
                    async for item in replies:
                        items.put_nowait(item)
            except HermesError as error:
                items.put_nowait(error)
            finally:
                items.put_nowait(None)

        loop = asyncio.get_running_loop()
        task = loop.create_task(ask(), context=self._context.copy())
        try:
            while (item := await items.get()) is not None:
                if isinstance(item, HermesError):
                    raise item
                yield item
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


REASONS = frozenset(get_args(Reason))
CONTINUATION = "rehearsal"


class TranscriptProvider:
    """Books the recorded calls and returns the recorded replies; calls `on_reply` before each."""

    def __init__(
        self, expected: ExpectedEvents, sync: SyncPoints, meter: Meter, on_reply: Callable[[], None]
    ) -> None:
        self._on_reply = on_reply
        self._expected = expected
        self._sync = sync
        self._meter = meter

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        while True:
            position, due = self._expected.position, self._due()
            await self._expected.wait_if_over()
            self._sync.check()
            match due:
                case _ if cap_reached(self._expected.events, position) is not None:
                    # The call that a cap blocked; if it was never made, a placeholder.
                    ahead = self._expected.events[position : self._expected.end]
                    call = next((e for e in ahead if isinstance(e, ModelCalled | TurnEnded)), None)
                    if not isinstance(call, ModelCalled):
                        call = ModelCalled(model="", provider="")
                    await self._book(call)
                case ModelCalled() if due.cause in TURN_CAUSES:
                    await self._book(due)
                case CallSettled() if not stopped_in_call(self._expected.events, position):
                    self._meter.settle(due)
                case ReplyAdded() if not is_interrupted(due):
                    self._on_reply()
                    if due.message.text:
                        yield TextDelta(text=due.message.text)
                    yield Reply(
                        message=due.message,
                        usage=due.usage,
                        model=due.model,
                        provider=due.provider,
                    )
                    return
                case TurnEnded(reason="failed"):
                    raise recorded_failure(due)
                case Compacted():
                    raise ProviderError("It was too long.", reason="context_overflow")
                case _:
                    if text := interrupted_text(self._expected.events, position):
                        yield TextDelta(text=text)
                    await self._wait_for_stop()
            if self._expected.position == position:
                # The session diverged; the divergence is already recorded.
                await self._expected.wait_for_release()
                self._sync.check()

    def _due(self) -> DurableEvent | None:
        """Return the next expected event. Skips messages recorded just before a call: they are sent
        when it is booked."""
        due, position = self._sync.due, self._expected.position
        while isinstance(due, MessageReceived) and position + 1 < self._expected.end:
            position += 1
            due = self._expected.events[position]
        return due

    async def _wait_for_stop(self) -> None:
        try:
            await self._sync.wait_until_abandoned()
        finally:
            if isinstance(due := self._sync.due, CallSettled):
                self._meter.settle(due)

    async def _book(self, call: ModelCalled) -> None:
        """Book a call. The meter determines the cause of repeated requests."""
        await self._meter.reserve(
            replace(call, cause=CHAT, reserved=call.reserved or Usage()), Usage()
        )


class ContinuingProvider:
    """Uses the recorded provider up to the divergence, then `continuation`, booked as free."""

    def __init__(
        self,
        inner: Provider,
        continuation: Provider,
        expected: ExpectedEvents,
        meter: Meter,
        world: World,
    ) -> None:
        self._inner = inner
        self._expected = expected
        self._continuation = Metered(
            continuation,
            meter,
            world=world,
            model=CONTINUATION,
            provider=CONTINUATION,
            cost=FREE.cost,
            max_output=None,
        )

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        self._expected.diverge_if_changed()
        if not self._expected.is_free:
            try:
                async with aclosing(self._inner.reply(prompt)) as items:
                    async for item in items:
                        yield item
                return
            except Diverged:
                pass
        async with aclosing(self._continuation.reply(prompt)) as items:
            async for item in items:
                yield item


def recorded_failure(ended: TurnEnded) -> HermesError:
    """Rebuild the error that ended a turn from its record."""
    if ended.detail in REASONS:
        return ProviderError(ended.error, reason=cast(Reason, ended.detail))
    kind = getattr(errors, ended.detail, None)
    if isinstance(kind, type) and issubclass(kind, HermesError):
        return kind(ended.error)
    return ProviderError(ended.error)


class RecordedApprovals:
    """Once the session runs past the recording, allows effects that the user approved in it. While
    the session follows the record, `inner` decides."""

    def __init__(self, inner: Policy, expected: ExpectedEvents) -> None:
        self._inner = inner
        self._expected = expected
        events = expected.events
        asked = {each.id: each.effect for each in events if isinstance(each, ApprovalAsked)}
        self._allowed = [
            asked[event.id]
            for event in expected.events
            if isinstance(event, ApprovalAnswered) and event.choice != DENY and event.id in asked
        ]

    def decide(
        self,
        effect: Effect,
        principal: Principal,
        origins: frozenset[str],
        seen: ConversationText | None = None,
    ) -> Decision:
        decision = self._inner.decide(effect, principal, origins, seen)
        if isinstance(decision, Ask) and self._expected.is_free and effect in self._allowed:
            return Allow(lifted=True)
        return decision

    def origin(self, effect: Effect) -> str:
        return self._inner.origin(effect)

    def remember(self, effect: Effect, scope: Scope) -> None:
        self._inner.remember(effect, scope)


NO_SUMMARY = "No summary was made here."


class RecordedEngine:
    """Repeats each compaction with the recorded summary, so that differences show. Past the end of
    the record, conversations are compacted without a summary. Compactions of an engine that is not
    `built_in` are copied."""

    def __init__(self, engine_deps: EngineDeps, sync: SyncPoints, *, built_in: bool = True) -> None:
        self._sync = sync
        self._is_ours = built_in
        self._inner = BuiltInEngine(engine_deps._replace(summarise=self._summary))

    def due(self, transcript: Transcript, prompt: Prompt, window: int) -> bool:
        if self._sync.due is None:
            return self._inner.due(transcript, prompt, window)
        return isinstance(self._sync.due, Compacted)

    def fits(self, transcript: Transcript, prompt: Prompt, window: int) -> bool:
        due = self._sync.due
        if due is None:
            return self._inner.fits(transcript, prompt, window)
        return not (isinstance(due, TurnEnded) and due.detail == "ContextFull")

    async def compact(
        self, transcript: Transcript, prompt: Prompt, request: CompactionRequest, meter: Meter
    ) -> Compacted | None:
        due = self._sync.due
        if isinstance(due, Compacted) and not self._is_ours:
            return due
        if isinstance(due, Compacted):
            request = replace(request, window=due.window)
        elif due is not None:
            return None
        return await self._inner.compact(transcript, prompt, request, meter)

    def preview(
        self, transcript: Transcript, prompt: Prompt, request: CompactionRequest
    ) -> Compacted | None:
        return self._inner.preview(transcript, prompt, request)

    async def _summary(self, _prompt: Prompt, _meter: Meter) -> Reply:
        due = self._sync.due
        if not isinstance(due, Compacted) or not due.summary:
            raise ProviderError(NO_SUMMARY)
        message = AssistantMessage(parts=(Text(text=due.summary),))
        return Reply(message=message, usage=Usage(), model="", provider="")


def recorded_hooks(sync: SyncPoints, events: list[DurableEvent]) -> TurnHooks | None:
    """Return hooks with the recorded verdicts; None if no hook answered in the session."""
    heard = any(isinstance(event, HookAnswered) for event in events)
    return RecordedHooks(sync) if heard else None


class RecordedHooks:
    """Returns the recorded hook verdicts. Recorded results already contain changes by hooks."""

    holds_text = False

    def __init__(self, sync: SyncPoints) -> None:
        self._sync = sync

    @property
    def _due(self) -> HookAnswered | None:
        due = self._sync.due
        return due if isinstance(due, HookAnswered) else None

    @property
    def sources(self) -> tuple[str, ...]:
        due = self._due
        return due.origins if due is not None else ()

    async def before_turn(self) -> str:
        due = self._due
        return due.text if due is not None and due.hook == BEFORE_TURN else ""

    async def before_tool(self, call: ToolCall) -> HookVerdict | None:
        due = self._due
        return verdict_of(due) if due is not None and due.call_id == call.id else None

    async def after_tool(
        self, call: ToolCall, result: ToolResult, seconds: float, fate: CallOutcome
    ) -> str | None:
        return None

    async def before_final_answer(self, text: str) -> str | None:
        due = self._due
        return due.text if due is not None and due.hook == FINAL_ANSWER_HOOK else None
