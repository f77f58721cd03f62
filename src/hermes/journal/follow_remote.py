"""A session that another process is in: the turn that answers a message is followed from here."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from hermes.core.errors import SessionBusy
from hermes.core.events import MessageReceived, Record, Steered, TurnEnded, TurnStarted
from hermes.core.ports import Journal
from hermes.core.world import Clock

LOOK_SECONDS = 0.1
LOOKS_PER_KNOCK = 10


async def follow_remote(
    journal: Journal, clock: Clock, session_id: str, key: str
) -> AsyncGenerator[Record]:
    """The records of the turn that takes up the message with this key, and the message itself.
    They end without a TurnEnded when the owner has gone: the message then waits for whoever opens
    the session."""
    turn = _Turn(key)
    looks = seen = 0
    while not turn.ended:
        looks += 1
        deserted = looks % LOOKS_PER_KNOCK == 0 and await _is_free(journal, session_id)
        for record in await journal.read(session_id, after=seen):
            seen = record.n
            if turn.has(record):
                yield record
        if deserted:
            return
        await clock.sleep(LOOK_SECONDS)


class _Turn:
    """Tells the records of the turn that answers a message from all others."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._message = 0
        self._id = ""
        self.ended = False

    def has(self, record: Record) -> bool:
        if self.ended:
            return False
        match record.event:
            case MessageReceived(key=self._key):
                self._message = record.n
                return True
            case TurnStarted(takes=takes) | Steered(takes=takes) if self._message in takes:
                self._id = record.turn_id
            case TurnEnded() if self._id:
                self.ended = record.turn_id == self._id
            case _:
                pass
        return bool(self._id) and record.turn_id == self._id


async def _is_free(journal: Journal, session_id: str) -> bool:
    try:
        lease = await journal.acquire(session_id)
    except SessionBusy:
        return False
    await journal.release(lease)
    return True
