"""Sessions of another day, written into a home as a run of that day would have left them."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from hermes.core.events import (
    DurableEvent,
    MessageReceived,
    ReplyAdded,
    SessionEnded,
    SessionOpened,
    TitleChanged,
    TurnEnded,
    TurnStarted,
)
from hermes.core.messages import AssistantMessage, Text, Usage, user_says
from hermes.core.world import World
from hermes.journal.journal import SqliteJournal
from hermes.testing.clock import VirtualClock

DAY = 86_400.0

T = TypeVar("T")
_seeds = itertools.count()


def in_the_past(home: Path, days: float, work: Callable[[SqliteJournal], Awaitable[T]]) -> T:
    """Do something to the journal of a home as if it were so many days ago."""
    home.mkdir(mode=0o700, exist_ok=True)
    clock = VirtualClock(time.time() - days * DAY)
    world = World(clock=clock, chance=random.Random(next(_seeds)))

    async def whole() -> T:
        async with SqliteJournal(home / "hermes.db", world) as journal:
            return await work(journal)

    return asyncio.run(whole())


def add_session(
    home: Path,
    session_id: str,
    *,
    days: float = 0.0,
    said: str = "hello",
    answer: str = "hi",
    title: str = "",
    source: str = "cli",
    ended: str = "",
    parent: str = "",
) -> None:
    """A session of one exchange; `ended` is the reason for which it was closed, if it was."""
    opened = SessionOpened(
        source=source, cwd="/plans", model="m1", provider="p1", system="s", parent=parent
    )
    reply = AssistantMessage(parts=(Text(text=answer),))
    events: list[DurableEvent] = [
        opened,
        MessageReceived(message=user_says(said)),
        TurnStarted(takes=(2,)),
        ReplyAdded(message=reply, usage=Usage(), model="m1", provider="p1"),
        TurnEnded(reason="done", usage=Usage()),
    ]
    if title:
        events.append(TitleChanged(title=title))
    if ended:
        events.append(SessionEnded(reason=ended))

    async def work(journal: SqliteJournal) -> None:
        lease, _ = await journal.create(session_id, events, turn_id="turn_1")
        await journal.release(lease)

    in_the_past(home, days, work)
