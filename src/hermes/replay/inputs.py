"""Finds the external inputs of a recording: commands, interrupts, spending caps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, assert_never, cast

from hermes.core import commands, events
from hermes.core.errors import BudgetReached
from hermes.core.messages import Image
from hermes.core.tool_calls import INTERRUPTED, UNKNOWN_OUTCOME

# Causes of the model calls of a turn; all other calls are side work.
TURN_CAUSES = frozenset(("chat", "cron", "sub-session", "retry", "fallback", "continuation"))
OWN_WORDS = "hermes"


def command_of(event: events.DurableEvent) -> commands.Command | None:
    """Returns the command that caused the event, or None if the session caused it itself."""
    match event:
        case events.MessageReceived(past=False) if event.message.origin != OWN_WORDS:
            message = event.message
            if event.steer and message.origin == "user":
                return commands.Steer(text=message.text, key=event.key)
            if event.steer:
                return commands.AddContext(text=message.text, key=event.key, origin=message.origin)
            images = tuple(part for part in message.parts if isinstance(part, Image))
            return commands.Say(
                text=message.text,
                images=images,
                key=event.key,
                origin=message.origin,
                calls=event.calls,
            )
        case events.MessageReceived(past=True, key=key) if key:
            message = event.message
            return commands.AddContext(text=message.text, key=key, origin=message.origin)
        case events.ModelSwitched():
            return commands.SwitchModel(model=event.model, provider=event.provider)
        case events.TitleChanged():
            return commands.Retitle(title=event.title)
        case events.Archived():
            return commands.Archive(away=event.away)
        case events.SessionEnded():
            return commands.End(reason=event.reason)
        case events.Rewound():
            return commands.Rewind(turns=event.turns)
        case events.Withdrawn():
            return commands.Withdraw(n=event.n)
        case events.PersonalityChanged():
            return commands.Overlay(name=event.name, text=event.text)
        case events.ControlsChanged():
            return commands.Tune(effort=event.effort, tier=event.tier, mode=event.mode)
        case events.GoalChanged():
            return commands.SetGoal(goal=event)
        case events.Compacted(cause="asked"):
            return commands.Compact(topic=event.topic, keep=event.keep)
        case (
            events.MessageReceived()
            | events.Compacted()
            | events.SessionOpened()
            | events.TurnStarted()
            | events.Steered()
            | events.ModelCalled()
            | events.ReplyAdded()
            | events.ToolIntended()
            | events.ToolStarted()
            | events.ToolFinished()
            | events.ApprovalAsked()
            | events.ApprovalAnswered()
            | events.QuestionAsked()
            | events.QuestionAnswered()
            | events.TurnEnded()
            | events.CallSettled()
            | events.CapRaised()
            | events.EffectDecided()
            | events.Erased()
            | events.HookAnswered()
            | events.InnerCallIntended()
            | events.InnerCallFinished()
        ):
            return None
        case _:
            assert_never(event)


def side_work(history: Sequence[events.DurableEvent]) -> frozenset[int]:
    """Returns the positions of model calls outside turns and of their settlements."""
    calls: set[str] = set()
    found: set[int] = set()
    for position, event in enumerate(history):
        if isinstance(event, events.ModelCalled) and event.cause not in TURN_CAUSES:
            calls.add(event.call)
            found.add(position)
        elif isinstance(event, events.CallSettled) and event.call in calls:
            found.add(position)
    return frozenset(found)


def side_calls(history: Sequence[events.DurableEvent]) -> frozenset[str]:
    """Returns the ids of model calls outside turns."""
    found = (history[position] for position in side_work(history))
    return frozenset(event.call for event in found if isinstance(event, events.ModelCalled))


def is_interrupted(event: events.DurableEvent) -> bool:
    """Returns whether the event holds the text of a model call that the user interrupted."""
    return isinstance(event, events.ReplyAdded) and event.message.stop == "interrupted"


def interrupted_text(history: Sequence[events.DurableEvent], position: int) -> str:
    """Returns what the model call running at this position had shown when the user interrupted it;
    "" if nothing, or if it was not interrupted."""
    for event in history[position:]:
        if isinstance(event, events.ReplyAdded):
            return event.message.text if is_interrupted(event) else ""
        if isinstance(event, events.TurnEnded):
            return ""
    return ""


def stops(history: Sequence[events.DurableEvent], start: int, end: int) -> frozenset[int]:
    """Returns the positions before which the user interrupted the turn outside a model call, within
    one process (from `start` up to `end`)."""
    found: set[int] = set()
    turn_start = start
    started: set[str] = set()
    for position in range(start, end):
        event = history[position]
        if isinstance(event, events.ReplyAdded) and not is_interrupted(event):
            turn_start, started = position + 1, set()
        elif isinstance(event, events.ToolStarted):
            started.add(event.call_id)
        elif isinstance(event, events.TurnEnded):
            in_call = any(
                isinstance(each, events.ModelCalled) and each.cause in TURN_CAUSES
                for each in history[turn_start:position]
            )
            if event.reason == "interrupted" and not in_call:
                shows = (i for i in range(turn_start, position) if _shows_stop(history[i], started))
                found.add(next(shows, position))
            turn_start, started = position + 1, set()
    return frozenset(found)


def stopped_in_call(history: Sequence[events.DurableEvent], position: int) -> bool:
    """Returns whether the user interrupted the model call that is running at this position."""
    for event in history[position:]:
        match event:
            case events.TurnEnded():
                return event.reason == "interrupted"
            case events.ReplyAdded():
                return is_interrupted(event)
            case (
                events.Archived()
                | events.CallSettled()
                | events.MessageReceived()
                | events.QuestionAnswered()
                | events.TitleChanged()
                | events.ControlsChanged()
                | events.GoalChanged()
                | events.Withdrawn()
            ):
                continue
            case _:
                return False
    return False


def cap_reached(history: Sequence[events.DurableEvent], position: int) -> BudgetReached | None:
    """Returns the cap that blocked a call at this position, taken from its question or the end of
    the turn; None when the call was made."""
    due = history[position] if position < len(history) else None
    outcome: events.DurableEvent | None = None
    if isinstance(due, events.TurnEnded) and due.reason == "paused":
        outcome, words, asked, in_dollars = due, due.error, 0.0, True
    elif isinstance(due, events.QuestionAsked) and not due.call_id:
        outcome = next(
            (e for e in history[position:] if isinstance(e, events.CapRaised | events.TurnEnded)),
            None,
        )
        words = due.question.removesuffix(" Go on?")
        choice = due.choices[0] if due.choices else ""
        amount = re.search(r"[\d,.]+", choice)
        asked, in_dollars = float(amount[0].replace(",", "")) if amount else 0.0, "$" in choice
    if isinstance(outcome, events.CapRaised):
        scope, key = outcome.scope, outcome.key
        asked = outcome.usd or outcome.tokens
    elif isinstance(outcome, events.TurnEnded):
        scope = cast(events.CapScope, outcome.detail.removeprefix("cap(").removesuffix(")"))
        key = ""
    else:
        return None
    unit: Literal["usd", "tokens"] = "usd" if in_dollars else "tokens"
    return BudgetReached(words, scope=scope, key=key, unit=unit, cap=0.0, spent=0.0, asked=asked)


def is_lost(event: events.DurableEvent, started: set[str]) -> bool:
    """Returns whether the event is the result of a call that was interrupted while running."""
    return (
        isinstance(event, events.ToolFinished | events.InnerCallFinished)
        and event.result.call_id in started
        and event.result.text.startswith(UNKNOWN_OUTCOME)
    )


def _shows_stop(event: events.DurableEvent, started: set[str]) -> bool:
    match event:
        case events.ToolFinished(result=result) | events.InnerCallFinished(result=result):
            return result.text.startswith(INTERRUPTED) or is_lost(event, started)
        case events.ApprovalAnswered(by="stop") | events.QuestionAnswered(by="stop"):
            return True
        case _:
            return False
