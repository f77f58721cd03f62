"""Finds the external inputs of a recording: commands, interrupts, spending caps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, assert_never, cast

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
    ApprovalAsked,
    Archived,
    CallSettled,
    CapRaised,
    CapScope,
    Compacted,
    DurableEvent,
    EffectDecided,
    Erased,
    HookAnswered,
    MessageReceived,
    ModelCalled,
    ModelSwitched,
    Overlaid,
    QuestionAnswered,
    QuestionAsked,
    ReplyAdded,
    Rewound,
    SessionEnded,
    SessionOpened,
    Steered,
    Titled,
    ToolFinished,
    ToolIntended,
    ToolStarted,
    Tuned,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from hermes.core.executor import NOT_RUN, UNKNOWN_OUTCOME
from hermes.core.messages import Image

# Causes of the model calls of a turn; all other calls are side work.
TURN_CAUSES = frozenset(("chat", "cron", "sub-session", "retry", "fallback", "continuation"))
OWN_WORDS = "hermes"


def command_of(event: DurableEvent) -> Command | None:
    """Returns the command that caused the event, or None if the session caused it itself."""
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
        case (
            MessageReceived()
            | Compacted()
            | SessionOpened()
            | TurnStarted()
            | Steered()
            | ModelCalled()
            | ReplyAdded()
            | ToolIntended()
            | ToolStarted()
            | ToolFinished()
            | ApprovalAsked()
            | ApprovalAnswered()
            | QuestionAsked()
            | QuestionAnswered()
            | TurnEnded()
            | CallSettled()
            | CapRaised()
            | EffectDecided()
            | Erased()
            | HookAnswered()
        ):
            return None
        case _:
            assert_never(event)


def side_work(events: Sequence[DurableEvent]) -> frozenset[int]:
    """Returns the positions of model calls outside turns and of their settlements."""
    calls: set[str] = set()
    found: set[int] = set()
    for position, event in enumerate(events):
        if isinstance(event, ModelCalled) and event.cause not in TURN_CAUSES:
            calls.add(event.call)
            found.add(position)
        elif isinstance(event, CallSettled) and event.call in calls:
            found.add(position)
    return frozenset(found)


def side_calls(events: Sequence[DurableEvent]) -> frozenset[str]:
    """Returns the ids of model calls outside turns."""
    found = (events[position] for position in side_work(events))
    return frozenset(event.call for event in found if isinstance(event, ModelCalled))


def stops(events: Sequence[DurableEvent], start: int, end: int) -> frozenset[int]:
    """Returns the positions before which the user interrupted the turn outside a model call, within
    one process (from `start` up to `end`)."""
    found: set[int] = set()
    turn_start = start
    started: set[str] = set()
    for position in range(start, end):
        event = events[position]
        if isinstance(event, ReplyAdded):
            turn_start, started = position + 1, set()
        elif isinstance(event, ToolStarted):
            started.add(event.call_id)
        elif isinstance(event, TurnEnded):
            in_call = any(
                isinstance(each, ModelCalled) and each.cause in TURN_CAUSES
                for each in events[turn_start:position]
            )
            if event.reason == "interrupted" and not in_call:
                shows = (i for i in range(turn_start, position) if _shows_stop(events[i], started))
                found.add(next(shows, position))
            turn_start, started = position + 1, set()
    return frozenset(found)


def stopped_in_call(events: Sequence[DurableEvent], position: int) -> bool:
    """Returns whether the user interrupted the model call that is running at this position."""
    for event in events[position:]:
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


def cap_reached(events: Sequence[DurableEvent], position: int) -> BudgetReached | None:
    """Returns the cap that blocked a call at this position, taken from its question or the end of
    the turn; None when the call was made."""
    due = events[position] if position < len(events) else None
    outcome: DurableEvent | None = None
    if isinstance(due, TurnEnded) and due.reason == "paused":
        outcome, words, asked, in_dollars = due, due.error, 0.0, True
    elif isinstance(due, QuestionAsked) and not due.call_id:
        outcome = next((e for e in events[position:] if isinstance(e, CapRaised | TurnEnded)), None)
        words = due.question.removesuffix(" Go on?")
        choice = due.choices[0] if due.choices else ""
        amount = re.search(r"[\d,.]+", choice)
        asked, in_dollars = float(amount[0].replace(",", "")) if amount else 0.0, "$" in choice
    if isinstance(outcome, CapRaised):
        scope, key = outcome.scope, outcome.key
        asked = outcome.usd or outcome.tokens
    elif isinstance(outcome, TurnEnded):
        scope = cast(CapScope, outcome.detail.removeprefix("cap(").removesuffix(")"))
        key = ""
    else:
        return None
    unit: Literal["usd", "tokens"] = "usd" if in_dollars else "tokens"
    return BudgetReached(words, scope=scope, key=key, unit=unit, cap=0.0, spent=0.0, asked=asked)


def is_lost(event: DurableEvent, started: set[str]) -> bool:
    """Returns whether the event is the result of a call that was interrupted while running."""
    return (
        isinstance(event, ToolFinished)
        and event.result.call_id in started
        and event.result.text.startswith(UNKNOWN_OUTCOME)
    )


def _shows_stop(event: DurableEvent, started: set[str]) -> bool:
    match event:
        case ToolFinished(result=result):
            return result.text.startswith(NOT_RUN) or is_lost(event, started)
        case ApprovalAnswered(by="stop") | QuestionAnswered(by="stop"):
            return True
        case _:
            return False
