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
    polls = last_read = message = 0
    turn_id = ""
    while True:
        polls += 1
        is_abandoned = polls % POLLS_PER_LEASE_CHECK == 0 and await _is_free(journal, session_id)
        for record in await journal.read(session_id, after=last_read):
            last_read, event = record.n, record.event
            if isinstance(event, MessageReceived) and event.key == key:
                message = record.n
                yield record
                continue
            if isinstance(event, TurnStarted | Steered) and message in event.takes:
                turn_id = record.turn_id
            if turn_id and record.turn_id == turn_id:
                yield record
                if isinstance(event, TurnEnded):
                    return
        if is_abandoned:
            return
        await clock.sleep(POLL_SECONDS)


async def _is_free(journal: Journal, session_id: str) -> bool:
    try:
        lease = await journal.acquire(session_id)
    except SessionBusy:
        return False
    await journal.release(lease)
    return True
