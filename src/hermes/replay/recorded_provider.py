"""Providers of a replay: replies from recorded events, and live replies after a divergence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from contextvars import copy_context
from typing import cast, get_args

from hermes.codec.values import replace
from hermes.core import errors
from hermes.core.errors import HermesError, ProviderError, Reason
from hermes.core.events import (
    CallSettled,
    Compacted,
    DurableEvent,
    MessageReceived,
    ModelCalled,
    ReplyAdded,
    TurnEnded,
)
from hermes.core.messages import Usage
from hermes.core.metering import CHAT, Metered
from hermes.core.ports import Meter, Provider
from hermes.core.prompt import Delta, Prompt, Reply, TextDelta
from hermes.core.world import World
from hermes.providers.profile import FREE
from hermes.replay.expected_events import ExpectedEvents
from hermes.replay.inputs import TURN_CAUSES, cap_reached, stopped_in_call
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
                case ReplyAdded():
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
                    await self._wait_for_stop()
            if self._expected.position == position:
                # The session diverged; the divergence is already recorded.
                await self._expected.wait_for_release()
                self._sync.check()

    def _due(self) -> DurableEvent | None:
        """Skips messages recorded just before a call: they are sent when it is booked."""
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
        """Books a call. The meter determines the cause of repeated requests."""
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
    """Rebuilds the error that ended a turn from its record."""
    if ended.detail in REASONS:
        return ProviderError(ended.error, reason=cast(Reason, ended.detail))
    kind = getattr(errors, ended.detail, None)
    if isinstance(kind, type) and issubclass(kind, HermesError):
        return kind(ended.error)
    return ProviderError(ended.error)
