"""Replies taken from recorded events, and live replies behind a divergence."""

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

_Item = Delta | Reply | HermesError | None


class OutsideProvider:
    """Asks `inner` as if from where this was made."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner
        self._context = copy_context()

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        items: asyncio.Queue[_Item] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._ask(prompt, items), context=self._context.copy())
        try:
            while (item := await items.get()) is not None:
                if isinstance(item, HermesError):
                    raise item
                yield item
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _ask(self, prompt: Prompt, items: asyncio.Queue[_Item]) -> None:
        try:
            async with aclosing(self._inner.reply(prompt)) as replies:
                async for item in replies:
                    items.put_nowait(item)
        except HermesError as error:
            items.put_nowait(error)
        finally:
            items.put_nowait(None)


REASONS = frozenset(get_args(Reason))
SOMEBODY = "rehearsal"


class TranscriptProvider:
    """Books the calls that were booked then and says what was said then; `told` when it does."""

    def __init__(
        self, score: ExpectedEvents, gates: SyncPoints, meter: Meter, told: Callable[[], None]
    ) -> None:
        self._told = told
        self._score = score
        self._gates = gates
        self._meter = meter

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        while True:
            place, due = self._score.place, self._due()
            await self._score.rest()
            self._gates.check()
            match due:
                case _ if cap_reached(self._score.events, place) is not None:
                    await self._book(self._next_reply(place))
                case ModelCalled() if due.cause in TURN_CAUSES:
                    await self._book(due)
                case CallSettled() if not stopped_in_call(self._score.events, place):
                    self._meter.settle(due)
                case ReplyAdded():
                    self._told()
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
            if self._score.place == place:
                # It was not to be; the difference is told already.
                await self._score.hang()
                self._gates.check()

    def _due(self) -> DurableEvent | None:
        """Messages that came just before a call come when it is booked."""
        due, place = self._gates.due, self._score.place
        while isinstance(due, MessageReceived) and place + 1 < self._score.end:
            place += 1
            due = self._score.events[place]
        return due

    async def _wait_for_stop(self) -> None:
        try:
            await self._gates.left_here()
        finally:
            if isinstance(due := self._gates.due, CallSettled):
                self._meter.settle(due)

    def _next_reply(self, place: int) -> ModelCalled:
        """The call that a cap stood in the way of; if it was never made, any call will do."""
        ahead = self._score.events[place : self._score.end]
        found = next((e for e in ahead if isinstance(e, ModelCalled | TurnEnded)), None)
        return found if isinstance(found, ModelCalled) else ModelCalled(model="", provider="")

    async def _book(self, call: ModelCalled) -> None:
        """The meter finds out by itself what a further request is for."""
        await self._meter.reserve(
            replace(call, cause=CHAT, reserved=call.reserved or Usage()), Usage()
        )


class ContinuingProvider:
    """The provider of the record as long as there is one, then `then`, booked as free."""

    def __init__(
        self, inner: Provider, then: Provider, score: ExpectedEvents, meter: Meter, world: World
    ) -> None:
        self._inner = inner
        self._score = score
        self._then = Metered(
            then,
            meter,
            world=world,
            model=SOMEBODY,
            provider=SOMEBODY,
            cost=FREE.cost,
            max_output=None,
        )

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        self._score.leave_if_changed()
        if not self._score.is_free:
            try:
                async with aclosing(self._inner.reply(prompt)) as items:
                    async for item in items:
                        yield item
                return
            except Diverged:
                pass
        async with aclosing(self._then.reply(prompt)) as items:
            async for item in items:
                yield item


def recorded_failure(ended: TurnEnded) -> HermesError:
    """The error that ended a turn, as far as its record tells."""
    if ended.detail in REASONS:
        return ProviderError(ended.error, reason=cast(Reason, ended.detail))
    kind = getattr(errors, ended.detail, None)
    if isinstance(kind, type) and issubclass(kind, HermesError):
        return kind(ended.error)
    return ProviderError(ended.error)
