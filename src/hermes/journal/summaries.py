"""What the events of a session add up to: its line in the session list and what it spent."""

from __future__ import annotations

from typing import NamedTuple

from hermes.core.events import (
    DurableEvent,
    MessageReceived,
    ModelCalled,
    ModelSwitched,
    ReplyAdded,
    SessionEnded,
    SessionOpened,
    Titled,
)
from hermes.core.messages import Usage

PREVIEW_CHARS = 120
DAY_SECONDS = 86_400


class Spent(NamedTuple):
    """One addition to the usage ledger; `day` counts from 1970 in UTC."""

    day: int
    model: str
    provider: str
    cause: str
    usage: Usage
    calls: int
    replies: int


class Summary:
    """The running totals of one session, changed in place by `add`. Attributes are the columns of
    the table `summaries`, in their order. A fork counts its own records only."""

    COLUMNS = (
        "session last_n title source cwd model provider principal preview started_at last_at"
        " ended_at end_reason message_count tool_call_count api_calls input output cache_read"
        " cache_write reasoning cost call_turn call_cause"
    ).split()

    def __init__(self, session: int, last_n: int) -> None:
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

    @classmethod
    def of_row(cls, row: tuple[object, ...]) -> Summary:
        summary = cls.__new__(cls)
        summary.__dict__.update(zip(cls.COLUMNS, row, strict=True))
        return summary

    def row(self) -> tuple[object, ...]:
        return tuple(self.__dict__.values())

    def copy(self) -> Summary:
        other = Summary.__new__(Summary)
        other.__dict__.update(self.__dict__)
        return other

    def add(self, event: DurableEvent, *, turn_id: str, at: float) -> Spent | None:
        """Count one more event; what it adds to the ledger, if anything."""
        self.last_n += 1
        self.last_at = at
        # A title may be changed when nobody is in the session; anything else opens it again.
        if self.ended_at is not None and not isinstance(event, Titled):
            self.ended_at, self.end_reason = None, ""
        match event:
            case MessageReceived():
                self.message_count += 1
                if not self.preview and event.message.origin == "user":
                    self.preview = " ".join(event.message.text[:500].split())[:PREVIEW_CHARS]
            case ReplyAdded():
                return self._add_reply(event, turn_id, at)
            case ModelCalled():
                return self._add_call(event, turn_id, at)
            case SessionOpened():
                self._open(event, at)
            case SessionEnded(reason=reason):
                self.ended_at, self.end_reason = at, reason
            case Titled(title=title):
                self.title = title
            case ModelSwitched(model=model, provider=provider):
                self.model, self.provider = model, provider
            case _:
                pass
        return None

    def _open(self, event: SessionOpened, at: float) -> None:
        self.started_at = self.started_at or at
        self.source, self.cwd, self.principal = event.source, event.cwd, event.principal
        self.model, self.provider = event.model, event.provider

    def _add_call(self, event: ModelCalled, turn_id: str, at: float) -> Spent:
        self.api_calls += 1
        self.call_turn, self.call_cause = turn_id, event.cause
        day = int(at // DAY_SECONDS)
        return Spent(day, event.model, event.provider, event.cause, Usage(), 1, 0)

    def _add_reply(self, event: ReplyAdded, turn_id: str, at: float) -> Spent:
        self.message_count += 1
        self.tool_call_count += len(event.message.calls)
        usage = event.usage
        self.input += usage.input
        self.output += usage.output
        self.cache_read += usage.cache_read
        self.cache_write += usage.cache_write
        self.reasoning += usage.reasoning
        if usage.cost is not None:
            self.cost = (self.cost or 0.0) + usage.cost
        # A call of another turn (a title made in the background) is not the cause of this reply.
        cause = self.call_cause if self.call_turn == turn_id and self.call_cause else "chat"
        day = int(at // DAY_SECONDS)
        return Spent(day, event.model, event.provider, cause, usage, 0, 1)
