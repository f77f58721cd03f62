"""Listeners of a session, none of which slows it down."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from hermes.codec.values import replace
from hermes.core.bell import Wakeup
from hermes.core.events import Event, Record, ToolProgress
from hermes.core.prompt import ReasoningDelta, TextDelta


class EventListener(Protocol):
    """Receives each record synchronously, so it must be quick and must not fail."""

    def push(self, record: Record) -> None: ...

    def close(self) -> None:
        """No more records follow."""
        ...


class Subscription:
    """A queue of records in order. Deltas that wait for a slow reader are merged, which bounds the
    queue."""

    def __init__(self, leave: Callable[[Subscription], None]) -> None:
        self._waiting: deque[Record] = deque()
        self._news = Wakeup()
        self._closed = False
        self._leave = leave
        self._idle = asyncio.Event()
        self._idle.set()

    def push(self, record: Record) -> None:
        if self._waiting and (merged := _merge(self._waiting[-1].event, record.event)):
            self._waiting[-1] = replace(self._waiting[-1], event=merged)
        else:
            self._waiting.append(record)
        self._news.set()
        self._idle.clear()

    def close(self) -> None:
        """The reader still gets what is queued, then its loop ends."""
        self._closed = True
        self._news.set()
        self._idle.set()
        self._leave(self)

    async def wait_until_read(self) -> None:
        """Wait until the reader has handled everything so far and waits for more."""
        await self._idle.wait()

    def __aiter__(self) -> AsyncIterator[Record]:
        return self

    async def __anext__(self) -> Record:
        while not self._waiting:
            if self._closed:
                raise StopAsyncIteration
            self._idle.set()
            await self._news.wait()
        return self._waiting.popleft()


def _merge(old: Event, new: Event) -> Event | None:
    match old, new:
        case TextDelta(), TextDelta():
            return TextDelta(text=old.text + new.text)
        case ReasoningDelta(), ReasoningDelta():
            return ReasoningDelta(text=old.text + new.text)
        case ToolProgress(), ToolProgress() if old.call_id == new.call_id:
            return new
        case _:
            return None
