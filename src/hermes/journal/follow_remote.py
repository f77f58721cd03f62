"""Follows the turn that answers a message in a session owned by another process."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from hermes.core.errors import SessionBusy
from hermes.core.events import MessageReceived, Record, Steered, TurnEnded, TurnStarted
from hermes.core.ports import Journal
from hermes.core.world import Clock

POLL_SECONDS = 0.1
POLLS_PER_LEASE_CHECK = 10


async def follow_remote(
    journal: Journal, clock: Clock, session_id: str, key: str
) -> AsyncGenerator[Record]:
    """Yields the message with this key and the records of the turn that answers it. They end
    without a TurnEnded when the owner is gone; the message then waits until the session is opened
    again."""
    turn = _Turn(key)
    polls = last_read = 0
    while not turn.ended:
        polls += 1
        is_abandoned = polls % POLLS_PER_LEASE_CHECK == 0 and await _is_free(journal, session_id)
        for record in await journal.read(session_id, after=last_read):
            last_read = record.n
            if turn.accepts(record):
                yield record
        if is_abandoned:
            return
        await clock.sleep(POLL_SECONDS)


class _Turn:
    """Selects the records of the turn that answers a message."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._message = 0
        self._id = ""
        self.ended = False

    def accepts(self, record: Record) -> bool:
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
