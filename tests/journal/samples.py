"""Events, worlds and journals that the tests of this room share."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

from hermes.core.events import (
    DurableEvent,
    MessageReceived,
    ModelCalled,
    ReplyAdded,
    SessionOpened,
    ToolFinished,
    ToolIntended,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from hermes.core.messages import AssistantMessage, Text, ToolCall, ToolResult, Usage, user_says
from hermes.core.world import World
from hermes.journal.journal import SqliteJournal

BEGINNING = 1_760_000_000.0


class HandClock:
    """Time that a test sets."""

    def __init__(self, now: float = BEGINNING) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


_seeds = itertools.count()


def world(clock: HandClock | None = None) -> World:
    """Every world of a run has another seed, as two processes would."""
    return World(clock=clock or HandClock(), chance=random.Random(next(_seeds)))


def journal_in(home: Path, clock: HandClock | None = None) -> SqliteJournal:
    return SqliteJournal(home / "hermes.db", world(clock))


def opened(source: str = "cli", **changes: object) -> SessionOpened:
    fields: dict[str, object] = {
        "source": source,
        "cwd": "/work/plan",
        "model": "small-1",
        "provider": "acme",
        "system": "You help.",
        **changes,
    }
    return SessionOpened(**fields)  # type: ignore[arg-type]


def said(text: str, key: str = "") -> MessageReceived:
    return MessageReceived(message=user_says(text), key=key)


def replied(text: str, usage: Usage | None = None, *calls: ToolCall) -> ReplyAdded:
    message = AssistantMessage(parts=(Text(text=text), *calls))
    return ReplyAdded(message=message, usage=usage or Usage(), model="small-1", provider="acme")


def exchange(number: int, first_n: int) -> list[DurableEvent]:
    """A whole turn with one tool call; its first record has the number `first_n`."""
    call = ToolCall(id=f"call_{number}", name="read_file", arguments={"path": "notes.txt"})
    usage = Usage(input=100, output=20, cache_read=5, requests=1, cost=0.25)
    result = ToolResult(call_id=call.id, name=call.name, parts=(Text(text="line one"),))
    return [
        said(f"Question {number}?", key=f"k{number}"),
        TurnStarted(takes=(first_n,)),
        ModelCalled(model="small-1", provider="acme"),
        replied("", usage, call),
        ToolIntended(call_id=call.id, name=call.name, repeat="safe"),
        ToolStarted(call_id=call.id),
        ToolFinished(result=result, seconds=0.5),
        ModelCalled(model="small-1", provider="acme"),
        replied(f"Answer {number}.", usage),
        TurnEnded(reason="done", usage=usage + usage),
    ]
