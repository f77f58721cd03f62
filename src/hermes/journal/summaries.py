"""Sums up the events of a session: its row in the session list and its spending."""

from __future__ import annotations

import math
from typing import NamedTuple, assert_never

import msgspec

from hermes.core import events
from hermes.core.caps import day_of
from hermes.core.messages import Usage

PREVIEW_CHARS = 120
# These may happen while a session is closed; any other event opens it again.
_POSSIBLE_AFTER_END = events.Archived | events.TitleChanged | events.Erased
# Sums must not depend on their order, so money is counted in whole picodollars.
PICO = 1_000_000_000_000


# More than any call costs, and small enough for sums in SQLite.
_MOST_DOLLARS = 100_000.0


def to_picodollars(dollars: float | None) -> int:
    """Convert an amount. One that cannot be stored, of a damaged or foreign record, is limited."""
    if dollars is None or math.isnan(dollars):
        return 0
    return round(max(0.0, min(dollars, _MOST_DOLLARS)) * PICO)


class UsageEntry(NamedTuple):
    """One addition to the usage ledger; `day` counts from 1970 in UTC."""

    day: int
    model: str
    provider: str
    cause: str
    usage: Usage
    calls: int
    replies: int


# States of a PendingCall.
OUTCOME_UNKNOWN = 0
IN_PROGRESS = 1
CORRECTED = 2


class PendingCall(NamedTuple):
    """A call without a certain cost, with its upper bound. A row of the table `assumed`, without
    its session. `open` is IN_PROGRESS until the call is settled."""

    call: str
    day: int
    turn: str
    model: str
    provider: str
    cause: str
    input: int
    output: int
    cost: int
    priced: int
    open: int

    @property
    def tokens(self) -> int:
        return self.input + self.output


class LedgerChange(NamedTuple):
    """How one event changes the ledger."""

    day: int
    tokens: int = 0  # added to the totals of the day, like `cost`
    cost: int = 0
    task: str = ""  # the turn whose cap counts this; "" for none
    spent: UsageEntry | None = None  # is added
    assumed: PendingCall | None = None  # replaces the entry of the same call
    gone: str = ""  # the call whose entry is deleted
    raised: events.CapRaised | None = None


class Summary(msgspec.Struct):
    """The running totals of one session, updated by `add`. The fields are the columns of the table
    `summaries` in their order, then `id` and `assumed`. A fork counts its own records only."""

    session: int
    last_n: int
    title: str = ""
    source: str = ""
    cwd: str = ""
    model: str = ""
    provider: str = ""
    principal: str = ""
    preview: str = ""
    started_at: float = 0.0
    last_at: float = 0.0
    ended_at: float | None = None
    end_reason: str = ""
    message_count: int = 0
    tool_call_count: int = 0
    api_calls: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: float | None = None
    call_turn: str = ""
    call_cause: str = ""
    call_booked: int = 0
    job: str = ""
    task: str = ""  # the turn of another session that this one works for
    inherited: int = 0  # the number of messages that a fork started with
    archived: int = 0
    id: str = ""  # of the session
    assumed: dict[str, PendingCall] = {}  # its calls without a certain cost

    def row(self) -> tuple[object, ...]:
        return msgspec.structs.astuple(self)[: len(COLUMNS)]

    def copy(self) -> Summary:
        return msgspec.structs.replace(self, assumed=dict(self.assumed))

    def add(self, event: events.DurableEvent, *, turn_id: str, at: float) -> LedgerChange | None:
        """Count one more event, and return its change of the ledger, if any."""
        self.last_n += 1
        if not isinstance(event, events.Archived | events.Erased):
            self.last_at = at
        if self.ended_at is not None and not isinstance(event, _POSSIBLE_AFTER_END):
            self.ended_at, self.end_reason = None, ""
        match event:
            case events.MessageReceived():
                self.message_count += 1
                self.preview = self.preview or preview_of(event)
            case events.Withdrawn():
                self.message_count -= 1
            case events.ReplyAdded():
                return self._add_reply(event, turn_id, at)
            case events.ModelCalled():
                return self._add_call(event, turn_id, at)
            case events.CallSettled():
                return self._settle(event)
            case events.CapRaised():
                return LedgerChange(day_of(at), raised=event)
            case events.SessionOpened():
                self.started_at = self.started_at or at
                self.source, self.cwd, self.principal = event.source, event.cwd, event.principal
                self.model, self.provider = event.model, event.provider
                self.job = event.job or event.parent or self.id
                self.task = event.task
            case events.SessionEnded(reason=reason):
                self.ended_at, self.end_reason = at, reason
            case events.TitleChanged(title=title):
                self.title = title
            case events.Archived(away=away):
                self.archived = int(away)
            case events.ModelSwitched(model=model, provider=provider):
                self.model, self.provider = model, provider
            case (
                events.TurnStarted()
                | events.Steered()
                | events.ToolIntended()
                | events.ToolStarted()
                | events.ToolFinished()
                | events.ApprovalAsked()
                | events.ApprovalAnswered()
                | events.QuestionAsked()
                | events.QuestionAnswered()
                | events.Rewound()
                | events.TurnEnded()
                | events.EffectDecided()
                | events.Compacted()
                | events.PersonalityChanged()
                | events.Erased()
                | events.HookAnswered()
                | events.ControlsChanged()
                | events.InnerCallIntended()
                | events.InnerCallFinished()
                | events.GoalChanged()
            ):
                pass
            case _:
                assert_never(event)
        return None

    def _add_call(self, event: events.ModelCalled, turn_id: str, at: float) -> LedgerChange:
        self.api_calls += 1
        self.call_turn, self.call_cause = turn_id, event.cause
        self.call_booked = int(bool(event.call))
        day = day_of(at)
        who = (event.model, event.provider, event.cause)
        if not event.call:
            return LedgerChange(day, spent=UsageEntry(day, *who, Usage(), 1, 0))
        amounts = _amounts(event.reserved or Usage())
        return self._assume(PendingCall(event.call, day, turn_id, *who, *amounts, open=IN_PROGRESS))

    def _settle(self, event: events.CallSettled) -> LedgerChange | None:
        """Settle a call. A call that is unknown or finally settled does not change."""
        before = self.assumed.get(event.call)
        if before is None:
            return None
        who = (event.model or before.model, event.provider or before.provider, before.cause)
        amounts = _amounts(event.usage)
        state = CORRECTED if event.corrected else OUTCOME_UNKNOWN
        now = PendingCall(before.call, before.day, before.turn, *who, *amounts, open=state)
        change = self._assume(now)
        if not event.certain:
            return change
        del self.assumed[event.call]
        self._count(event.usage)
        spent = UsageEntry(before.day, *who, event.usage, 1, 1)
        return change._replace(assumed=None, spent=spent, gone=event.call)

    def _assume(self, now: PendingCall) -> LedgerChange:
        before = self.assumed.get(now.call)
        self.assumed[now.call] = now
        tokens = now.tokens - (before.tokens if before else 0)
        cost = now.cost - (before.cost if before else 0)
        return self._spend(now.day, now.turn, tokens, cost)._replace(assumed=now)

    def _spend(self, day: int, turn_id: str, tokens: int, cost: int) -> LedgerChange:
        return LedgerChange(day, tokens, cost, task=self.task or turn_id)

    def _count(self, usage: Usage) -> None:
        self.input += usage.input
        self.output += usage.output
        self.cache_read += usage.cache_read
        self.cache_write += usage.cache_write
        self.reasoning += usage.reasoning
        if usage.cost is not None:
            self.cost = (self.cost or 0.0) + usage.cost

    def _add_reply(self, event: events.ReplyAdded, turn_id: str, at: float) -> LedgerChange | None:
        self.message_count += 1
        self.tool_call_count += len(event.message.calls)
        # A call of another turn (a title made in the background) is not the cause of this reply.
        is_called = self.call_turn == turn_id
        if is_called and self.call_booked:
            return None
        usage = event.usage
        self._count(usage)
        cause = self.call_cause if is_called and self.call_cause else "chat"
        spent = UsageEntry(day_of(at), event.model, event.provider, cause, usage, 0, 1)
        cost = to_picodollars(usage.cost)
        change = self._spend(spent.day, turn_id, usage.prompt + usage.output, cost)
        return change._replace(spent=spent)


COLUMNS = Summary.__struct_fields__[:-2]


def preview_of(received: events.MessageReceived) -> str:
    """Return the beginning of a person's message; empty for messages of the program itself."""
    message = received.message
    return "" if message.origin != "user" else " ".join(message.text[:500].split())[:PREVIEW_CHARS]


def _amounts(usage: Usage) -> tuple[int, int, int, int]:
    """Return input, output, cost and whether the cost is known."""
    return usage.prompt, usage.output, to_picodollars(usage.cost), int(usage.cost is not None)
