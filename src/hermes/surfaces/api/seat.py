"""A session slot: one open session, its users and its turn lock."""

from __future__ import annotations

import asyncio

from hermes.core.session import Session
from hermes.surfaces.api.refusals import HttpError

BUSY_SECONDS = 300.0


class SessionSlot:
    def __init__(self) -> None:
        self.open_lock = asyncio.Lock()
        self.turn_lock = asyncio.Lock()
        self.users = 0
        self.session: Session | None = None


async def acquire_turn(seat: SessionSlot) -> None:
    """HttpError 409 when another request holds the session too long."""
    try:
        async with asyncio.timeout(BUSY_SECONDS):
            await seat.turn_lock.acquire()
    except TimeoutError as error:
        words = "Another request is using this session; try again later."
        raise HttpError(409, "session_busy", words) from error
