"""A recorder whose every event passes the score at the moment it is noted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hermes.core.caps import Caps
from hermes.core.events import DurableEvent, ModelCalled, Record
from hermes.core.messages import Usage
from hermes.core.recorder import Recorder
from hermes.replay.score import ExpectedEvents


class ReplayRecorder(Recorder):
    """After the end of its part it writes nothing and lets nobody go on. `books` is called when a
    call is about to be booked."""

    def __init__(
        self,
        score: ExpectedEvents,
        noted: Callable[[DurableEvent], None],
        books: Callable[[], None],
        *given: Any,
        **named: Any,
    ) -> None:
        super().__init__(*given, **named)
        self._score = score
        self._tell = noted
        self._books = books

    def note(self, *events: DurableEvent) -> None:
        for event in events:
            if self._score.is_closed or self._score.was_killed:
                return
            seen = self.redactor.durable(event)
            super().note(seen)
            self._tell(seen)

    async def commit(self, *events: DurableEvent) -> tuple[Record, ...]:
        self.note(*events)
        if self._score.is_closed:
            return ()
        records = await super().commit()
        await self._score.rest()
        return records

    async def book(self, call: ModelCalled, least: Usage, caps: Caps) -> ModelCalled:
        if self._score.is_closed:
            return call
        self._books()
        booked = await super().book(call, least, caps)
        if not self._score.asks_on():
            await self._score.rest()
        return booked

    def insert(self, event: DurableEvent) -> None:
        """Note an event that is not compared."""
        super().note(event)

    async def flush(self) -> None:
        """Write what is noted, whatever comes after it."""
        await super().commit()
