"""Ends the session of a chat."""

from __future__ import annotations

import asyncio

from hermes.app.build import App
from hermes.core.commands import End, Interrupt
from hermes.core.errors import HermesError
from hermes.core.session import Session

LEAVE_SECONDS = 5.0
STOP_SECONDS = 0.05


async def leave(app: App, session: Session, reason: str) -> None:
    """Stop the running turn and all queued ones."""
    try:
        async with asyncio.timeout(LEAVE_SECONDS):
            while session.busy:
                await session.send(Interrupt())
                await asyncio.sleep(STOP_SECONDS)
        await session.send(End(reason=reason))
    except (TimeoutError, HermesError):
        # Unfinished work continues when the session is resumed.
        pass
    await app.close_session(session)


async def first_of(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
