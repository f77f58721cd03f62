"""Writes a session's events: journal first, then the transcript, then everybody who watches."""

from __future__ import annotations

import asyncio

from hermes.core.events import DurableEvent, LiveEvent, Record, SessionOpened
from hermes.core.ports import Journal, Lease
from hermes.core.subscription import Subscription
from hermes.core.transcript import Transcript
from hermes.core.world import World


class Recorder:
    """One per open session. `note` keeps an event for the next `commit`, so that events which
    belong together cost one commit. A session that never commits leaves nothing behind."""

    def __init__(
        self,
        journal: Journal,
        session_id: str,
        world: World,
        *,
        opening: SessionOpened | None = None,
        lease: Lease | None = None,
        transcript: Transcript | None = None,
    ) -> None:
        self.session_id = session_id
        self.transcript = transcript or Transcript()
        self.lease = lease
        self._opening = opening
        self._journal = journal
        self._world = world
        self._turn_id = self.transcript.turn_id
        self._noted: list[DurableEvent] = []
        self._turn = asyncio.Lock()
        self._readers: list[Subscription] = []
        if opening is not None and lease is None:
            # The prompt is needed before the first commit.
            self.transcript.opened = opening
            self.transcript.model, self.transcript.provider = opening.model, opening.provider

    def subscribe(self) -> Subscription:
        reader = Subscription(self._leave)
        self._readers.append(reader)
        return reader

    def begin_turn(self, turn_id: str) -> None:
        """Events from here on belong to this turn."""
        self._turn_id = turn_id

    def note(self, *events: DurableEvent) -> None:
        self._noted.extend(events)

    async def commit(self, *events: DurableEvent) -> tuple[Record, ...]:
        """Durable, applied and shown when this returns, also if the caller is cancelled while
        it waits: the journal and the transcript never part ways."""
        self._noted.extend(events)
        return await asyncio.shield(asyncio.ensure_future(self._flush()))

    def show(self, event: LiveEvent) -> None:
        self._publish(
            Record(
                session_id=self.session_id,
                n=0,
                turn_id=self._turn_id,
                at=self._world.clock.now(),
                event=event,
            )
        )

    async def release(self) -> None:
        for reader in tuple(self._readers):
            reader.close()
        if self.lease is not None:
            await self._journal.release(self.lease)
            self.lease = None

    async def _flush(self) -> tuple[Record, ...]:
        async with self._turn:
            batch, self._noted = self._noted, []
            if not batch:
                return ()
            try:
                records = await self._append(batch)
            except BaseException:
                self._noted = batch + self._noted
                raise
            for record in records:
                self.transcript.apply(record)
                self._publish(record)
            return records

    async def _append(self, batch: list[DurableEvent]) -> tuple[Record, ...]:
        if self.lease is None:
            assert self._opening is not None
            self.lease, records = await self._journal.create(
                self.session_id, (self._opening, *batch), turn_id=self._turn_id
            )
            return records
        return await self._journal.append(self.lease, batch, turn_id=self._turn_id)

    def _publish(self, record: Record) -> None:
        for reader in self._readers:
            reader.push(record)

    def _leave(self, reader: Subscription) -> None:
        if reader in self._readers:
            self._readers.remove(reader)
