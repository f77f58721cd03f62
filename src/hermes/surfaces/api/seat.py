"""A session slot: one open session, its users and its turn lock."""

from __future__ import annotations

import asyncio

from hermes.core.session import Session
from hermes.surfaces.api.refusals import Refusal

BUSY_SECONDS = 300.0


class Seat:
    def __init__(self) -> None:
        self.opening = asyncio.Lock()
        self.turn = asyncio.Lock()
        self.users = 0
        self.session: Session | None = None


async def take_turn(seat: Seat) -> None:
    """HttpError 409 when another request holds the session too long."""
    try:
        async with asyncio.timeout(BUSY_SECONDS):
            await seat.turn.acquire()
    except TimeoutError as error:
        words = "Another request is using this session; try again later."
        raise Refusal(409, "session_busy", words) from error
