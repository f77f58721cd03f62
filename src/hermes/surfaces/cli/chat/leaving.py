"""How a chat lets go of a session."""

from __future__ import annotations

import asyncio

from hermes.app.build import App
from hermes.core.commands import End, Interrupt
from hermes.core.errors import HermesError
from hermes.core.session import Session

LEAVE_SECONDS = 5.0
STOP_SECONDS = 0.05


async def leave(app: App, session: Session, reason: str) -> None:
    """Nothing goes on afterwards: neither the turn that runs nor one that waits."""
    try:
        async with asyncio.timeout(LEAVE_SECONDS):
            while session.busy:
                await session.send(Interrupt())
                await asyncio.sleep(STOP_SECONDS)
        await session.send(End(reason=reason))
    except (TimeoutError, HermesError):
        # What is unfinished stays so, and goes on when the session is resumed.
        pass
    await app.leave(session)


async def first_of(*events: asyncio.Event) -> None:
    """Returns when one of them is set."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
