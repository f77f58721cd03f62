"""Which records came from outside, and by which command; where a person stopped a turn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from hermes.core.commands import (
    Archive,
    Command,
    Compact,
    End,
    Overlay,
    Retitle,
    Rewind,
    Say,
    Steer,
    SwitchModel,
    Tune,
    Withdraw,
)
from hermes.core.errors import BudgetReached
from hermes.core.events import (
    ApprovalAnswered,
    Archived,
    CallSettled,
    CapRaised,
    CapScope,
    Compacted,
    DurableEvent,
    MessageReceived,
    ModelCalled,
    ModelSwitched,
    Overlaid,
    QuestionAnswered,
    QuestionAsked,
    ReplyAdded,
    Rewound,
    SessionEnded,
    Titled,
    ToolFinished,
    ToolStarted,
    Tuned,
    TurnEnded,
    Withdrawn,
)
from hermes.core.executor import NOT_RUN, UNKNOWN_OUTCOME
from hermes.core.messages import Image

# What the calls of a turn are made for; all others are side work.
TURN_CAUSES = frozenset(("chat", "cron", "sub-session", "retry", "fallback", "continuation"))
OWN_WORDS = "hermes"


def command_of(event: DurableEvent) -> Command | None:
    """What somebody asked for, if this event only says that."""
    match event:
        case MessageReceived(past=False) if event.message.origin != OWN_WORDS:
            message = event.message
            if event.steer:
                return Steer(text=message.text, key=event.key)
            images = tuple(part for part in message.parts if isinstance(part, Image))
            return Say(text=message.text, images=images, key=event.key, origin=message.origin)
        case ModelSwitched():
            return SwitchModel(model=event.model, provider=event.provider)
        case Titled():
            return Retitle(title=event.title)
        case Archived():
            return Archive(away=event.away)
        case SessionEnded():
            return End(reason=event.reason)
        case Rewound():
            return Rewind(turns=event.turns)
        case Withdrawn():
            return Withdraw(n=event.n)
        case Overlaid():
            return Overlay(name=event.name, text=event.text)
        case Tuned():
            return Tune(effort=event.effort, tier=event.tier, mode=event.mode)
        case Compacted(cause="asked"):
            return Compact(topic=event.topic, keep=event.keep)
        case _:
            return None


def side_work(events: Sequence[DurableEvent]) -> frozenset[int]:
    """The places of calls that were made beside the turns, and of their settlements."""
    calls: set[str] = set()
    found: set[int] = set()
    for place, event in enumerate(events):
        if isinstance(event, ModelCalled) and event.cause not in TURN_CAUSES:
            calls.add(event.call)
            found.add(place)
        elif isinstance(event, CallSettled) and event.call in calls:
            found.add(place)
    return frozenset(found)


def side_calls(events: Sequence[DurableEvent]) -> frozenset[str]:
    """The names of the calls that were made beside the turns."""
    found = (events[place] for place in side_work(events))
    return frozenset(event.call for event in found if isinstance(event, ModelCalled))


def stops(events: Sequence[DurableEvent], start: int, end: int) -> frozenset[int]:
    """The places before which somebody had stopped the turn, outside of model calls, as far as one
    process saw it (from `start` up to `end`)."""
    found: set[int] = set()
    begun = start
    started: set[str] = set()
    for place in range(start, end):
        event = events[place]
        if isinstance(event, ReplyAdded):
            begun, started = place + 1, set()
        elif isinstance(event, ToolStarted):
            started.add(event.call_id)
        elif isinstance(event, TurnEnded):
            if event.reason == "interrupted" and not _in_call(events, begun, place):
                shows = (i for i in range(begun, place) if _shows_stop(events[i], started))
                found.add(next(shows, place))
            begun, started = place + 1, set()
    return frozenset(found)


def stopped_in_call(events: Sequence[DurableEvent], place: int) -> bool:
    """Whether the call that is under way at this place was ended by a person."""
    for event in events[place:]:
        match event:
            case TurnEnded():
                return event.reason == "interrupted"
            case (
                Archived()
                | CallSettled()
                | MessageReceived()
                | QuestionAnswered()
                | Titled()
                | Tuned()
                | Withdrawn()
            ):
                continue
            case _:
                return False
    return False


def cap_reached(events: Sequence[DurableEvent], place: int) -> BudgetReached | None:
    """The cap that did not allow a call at this place, as its question or the end of the turn
    tells; None when the call was made."""
    due = events[place] if place < len(events) else None
    if isinstance(due, TurnEnded) and due.reason == "paused":
        return _reached(due.error, due, 0.0, in_dollars=True)
    if not isinstance(due, QuestionAsked) or due.call_id:
        return None
    then = next((e for e in events[place:] if isinstance(e, CapRaised | TurnEnded)), None)
    if not isinstance(then, CapRaised | TurnEnded):
        return None
    amount = re.search(r"[\d,.]+", due.choices[0] if due.choices else "")
    asked = float(amount[0].replace(",", "")) if amount else 0.0
    if isinstance(then, CapRaised):
        asked = then.usd or then.tokens
    words = due.question.removesuffix(" Go on?")
    return _reached(words, then, asked, in_dollars="$" in due.choices[0])


def _reached(
    words: str, then: CapRaised | TurnEnded, asked: float, *, in_dollars: bool
) -> BudgetReached:
    if isinstance(then, CapRaised):
        scope, key = then.scope, then.key
    else:
        scope = cast(CapScope, then.detail.removeprefix("cap(").removesuffix(")"))
        key = ""
    return BudgetReached(
        words,
        scope=scope,
        key=key,
        unit="usd" if in_dollars else "tokens",
        cap=0.0,
        spent=0.0,
        asked=asked,
    )


def is_lost(event: DurableEvent, started: set[str]) -> bool:
    """A result that says: stopped while it ran, outcome unknown."""
    return (
        isinstance(event, ToolFinished)
        and event.result.call_id in started
        and event.result.text.startswith(UNKNOWN_OUTCOME)
    )


def _in_call(events: Sequence[DurableEvent], start: int, end: int) -> bool:
    return any(
        isinstance(event, ModelCalled) and event.cause in TURN_CAUSES for event in events[start:end]
    )


def _shows_stop(event: DurableEvent, started: set[str]) -> bool:
    match event:
        case ToolFinished(result=result):
            return result.text.startswith(NOT_RUN) or is_lost(event, started)
        case ApprovalAnswered(by="stop") | QuestionAnswered(by="stop"):
            return True
        case _:
            return False
