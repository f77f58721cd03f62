"""Sums up the events of a session: its row in the session list and its spending."""

from __future__ import annotations

from typing import NamedTuple, assert_never

from hermes.core.caps import day_of
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Archived,
    CallSettled,
    CapRaised,
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
from hermes.core.messages import Usage

PREVIEW_CHARS = 120
# Sums must not depend on their order, so money is counted in whole picodollars.
PICO = 1_000_000_000_000


def to_picodollars(dollars: float | None) -> int:
    return round((dollars or 0.0) * PICO)


class UsageEntry(NamedTuple):
    """One addition to the usage ledger; `day` counts from 1970 in UTC."""

    day: int
    model: str
    provider: str
    cause: str
    usage: Usage
    calls: int
    replies: int


class PendingCall(NamedTuple):
    """A call without a certain cost, with its upper bound; open until it is settled. A row of the
    table `assumed`, without its session."""

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
    """How one event changes the ledger: `spent` is added, `assumed` replaces the entry of the same
    call, `gone` is the call whose entry is deleted. `tokens` and `cost` are added to the totals of
    `day`."""

    day: int
    tokens: int = 0
    cost: int = 0
    spent: UsageEntry | None = None
    assumed: PendingCall | None = None
    gone: str = ""
    raised: CapRaised | None = None


class Summary:
    """The running totals of one session, updated by `add`. The attributes are the columns of the
    table `summaries` in their order, plus the session's `id` and its `assumed` calls. A fork counts
    its own records only; `inherited` is the number of messages it started with. `task` is the
    newest turn and its spending."""

    COLUMNS = (
        "session last_n title source cwd model provider principal preview started_at last_at"
        " ended_at end_reason message_count tool_call_count api_calls input output cache_read"
        " cache_write reasoning cost call_turn call_cause call_booked job task task_tokens"
        " task_cost inherited archived"
    ).split()
    __slots__ = ("__dict__", "assumed", "id")

    def __init__(self, session: int, last_n: int, id: str) -> None:
        self.id = id
        self.assumed: dict[str, PendingCall] = {}
        self.session = session
        self.last_n = last_n
        self.title = ""
        self.source = ""
        self.cwd = ""
        self.model = ""
        self.provider = ""
        self.principal = ""
        self.preview = ""
        self.started_at = 0.0
        self.last_at = 0.0
        self.ended_at: float | None = None
        self.end_reason = ""
        self.message_count = 0
        self.tool_call_count = 0
        self.api_calls = 0
        self.input = 0
        self.output = 0
        self.cache_read = 0
        self.cache_write = 0
        self.reasoning = 0
        self.cost: float | None = None
        self.call_turn = ""
        self.call_cause = ""
        self.call_booked = 0
        self.job = id
        self.task = ""
        self.task_tokens = 0
        self.task_cost = 0
        self.inherited = 0
        self.archived = 0

    @classmethod
    def of_row(cls, row: tuple[object, ...], id: str) -> Summary:
        summary = cls.__new__(cls)
        summary.id, summary.assumed = id, {}
        summary.__dict__.update(zip(cls.COLUMNS, row, strict=True))
        return summary

    def row(self) -> tuple[object, ...]:
        return tuple(self.__dict__.values())

    def copy(self) -> Summary:
        other = Summary.__new__(Summary)
        other.id, other.assumed = self.id, dict(self.assumed)
        other.__dict__.update(self.__dict__)
        return other

    def add(self, event: DurableEvent, *, turn_id: str, at: float) -> LedgerChange | None:
        """Count one more event, and return its change of the ledger, if any."""
        self.last_n += 1
        if not isinstance(event, Archived | Erased):
            self.last_at = at
        # These may happen while the session is closed; any other event opens it again.
        if self.ended_at is not None and not isinstance(event, Archived | Titled | Erased):
            self.ended_at, self.end_reason = None, ""
        match event:
            case MessageReceived():
                self.message_count += 1
                self.preview = self.preview or preview_of(event)
            case Withdrawn():
                self.message_count -= 1
            case ReplyAdded():
                return self._add_reply(event, turn_id, at)
            case ModelCalled():
                return self._add_call(event, turn_id, at)
            case CallSettled():
                return self._settle(event)
            case TurnStarted():
                self.task, self.task_tokens, self.task_cost = turn_id, 0, 0
            case CapRaised():
                return LedgerChange(day_of(at), raised=event)
            case SessionOpened():
                self._open(event, at)
            case SessionEnded(reason=reason):
                self.ended_at, self.end_reason = at, reason
            case Titled(title=title):
                self.title = title
            case Archived(away=away):
                self.archived = int(away)
            case ModelSwitched(model=model, provider=provider):
                self.model, self.provider = model, provider
            case (
                Steered()
                | ToolIntended()
                | ToolStarted()
                | ToolFinished()
                | ApprovalAsked()
                | ApprovalAnswered()
                | QuestionAsked()
                | QuestionAnswered()
                | Rewound()
                | TurnEnded()
                | EffectDecided()
                | Compacted()
                | Overlaid()
                | Erased()
                | HookAnswered()
                | Tuned()
            ):
                pass
            case _:
                assert_never(event)
        return None

    def _open(self, event: SessionOpened, at: float) -> None:
        self.started_at = self.started_at or at
        self.source, self.cwd, self.principal = event.source, event.cwd, event.principal
        self.model, self.provider = event.model, event.provider
        self.job = event.job or event.parent or self.id

    def _add_call(self, event: ModelCalled, turn_id: str, at: float) -> LedgerChange:
        self.api_calls += 1
        self.call_turn, self.call_cause = turn_id, event.cause
        self.call_booked = int(bool(event.call))
        day = day_of(at)
        if not event.call:
            who = (event.model, event.provider, event.cause)
            return LedgerChange(day, spent=UsageEntry(day, *who, Usage(), 1, 0))
        return self._assume(_pending_call(event, event.reserved or Usage(), turn_id, day))

    def _settle(self, event: CallSettled) -> LedgerChange | None:
        """An unknown or finally settled call does not change any more."""
        before = self.assumed.get(event.call)
        if before is None:
            return None
        model, provider = event.model or before.model, event.provider or before.provider
        if not event.certain:
            again = ModelCalled(model=model, provider=provider, call=event.call, cause=before.cause)
            now = _pending_call(again, event.usage, before.turn, before.day)
            return self._assume(now._replace(open=0))
        del self.assumed[event.call]
        self._count(event.usage)
        spent = UsageEntry(before.day, model, provider, before.cause, event.usage, 1, 1)
        tokens, cost = _tokens(event.usage), to_picodollars(event.usage.cost)
        return self._set_amounts(before, tokens, cost)._replace(spent=spent, gone=event.call)

    def _assume(self, now: PendingCall) -> LedgerChange:
        before = self.assumed.get(now.call) or now._replace(input=0, output=0, cost=0)
        self.assumed[now.call] = now
        return self._set_amounts(before, now.tokens, now.cost)._replace(assumed=now)

    def _set_amounts(self, before: PendingCall, tokens: int, cost: int) -> LedgerChange:
        """Set the amounts of a call."""
        tokens, cost = tokens - before.tokens, cost - before.cost
        self._spend_in(before.turn, tokens, cost)
        return LedgerChange(before.day, tokens, cost)

    def _spend_in(self, turn_id: str, tokens: int, cost: int) -> None:
        if turn_id == self.task:
            self.task_tokens += tokens
            self.task_cost += cost

    def _count(self, usage: Usage) -> None:
        self.input += usage.input
        self.output += usage.output
        self.cache_read += usage.cache_read
        self.cache_write += usage.cache_write
        self.reasoning += usage.reasoning
        if usage.cost is not None:
            self.cost = (self.cost or 0.0) + usage.cost

    def _add_reply(self, event: ReplyAdded, turn_id: str, at: float) -> LedgerChange | None:
        self.message_count += 1
        self.tool_call_count += len(event.message.calls)
        # A call of another turn (a title made in the background) is not the cause of this reply.
        is_called = self.call_turn == turn_id
        if is_called and self.call_booked:
            return None
        usage = event.usage
        self._count(usage)
        tokens, cost = _tokens(usage), to_picodollars(usage.cost)
        self._spend_in(turn_id, tokens, cost)
        cause = self.call_cause if is_called and self.call_cause else "chat"
        spent = UsageEntry(day_of(at), event.model, event.provider, cause, usage, 0, 1)
        return LedgerChange(spent.day, tokens, cost, spent)


def preview_of(received: MessageReceived) -> str:
    """The beginning of a person's message; empty for messages of the program itself."""
    message = received.message
    return "" if message.origin != "user" else " ".join(message.text[:500].split())[:PREVIEW_CHARS]


def _tokens(usage: Usage) -> int:
    return usage.prompt + usage.output


def _pending_call(call: ModelCalled, usage: Usage, turn_id: str, day: int) -> PendingCall:
    return PendingCall(
        call=call.call,
        day=day,
        turn=turn_id,
        model=call.model,
        provider=call.provider,
        cause=call.cause,
        input=usage.prompt,
        output=usage.output,
        cost=to_picodollars(usage.cost),
        priced=int(usage.cost is not None),
        open=1,
    )
