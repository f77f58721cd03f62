"""A run: the records of one turn so far, for any number of readers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Literal

from hermes.core.concurrency import Wakeup
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    EndReason,
    MessageReceived,
    ModelCalled,
    QuestionAnswered,
    QuestionAsked,
    Record,
    ReplyAdded,
    Steered,
    ToolFinished,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from hermes.core.messages import AssistantMessage, Usage
from hermes.core.prompt import Notice, ReasoningDelta, Restarted, TextDelta
from hermes.core.session import Session

SESSION_ID = r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}"
RUN_ID = rf"run_({SESSION_ID})_[0-9a-f]{{12}}"


def session_of(run_id: str) -> str:
    """The id of the session that a run belongs to; "" when the id is invalid."""
    found = re.fullmatch(RUN_ID, run_id, re.ASCII)
    return found[1] if found else ""


Status = Literal[
    "queued",
    "running",
    "waiting_for_approval",
    "stopping",
    "completed",
    "failed",
    "cancelled",
]
ENDINGS: dict[EndReason, Status] = {
    "interrupted": "cancelled",
    "failed": "failed",
    "crashed": "failed",
    "paused": "failed",
}


class PartialReply:
    """The unfinished reply, as pieces of (is_text, text); other pieces are reasoning."""

    def __init__(self) -> None:
        self.pieces: list[tuple[bool, str]] = []

    @property
    def text(self) -> str:
        return "".join(text for is_text, text in self.pieces if is_text)


class Run:
    """One turn that is executed for a client."""

    def __init__(self, id: str, session_id: str, at: float) -> None:
        self.id = id
        self.session_id = session_id
        self.created_at = at
        # The durable events of the turn in order, starting with the message. A past run consists of
        # them alone.
        self.records: list[Record] = []
        self.draft = PartialReply()
        self.drafts: dict[int, PartialReply] = {}
        self.turn_id = ""
        # The replies of the turn before this message joined it, if they are known.
        self.earlier_replies = 0
        self.ended: TurnEnded | None = None
        self.failure: BaseException | None = None
        self.session: Session | None = None
        self.is_stopping = False
        # The run waits for its session or for capacity; nothing is in the journal.
        self.is_waiting = False
        # Why nothing has arrived from the model for long, "" otherwise.
        self.delay = ""
        self.pending: dict[str, ApprovalAsked | QuestionAsked] = {}
        self.message_count = 0
        self.is_persistent = False
        # Another process executes the run.
        self.is_remote = False
        # Set after everything that follows the end is stored, so that a client can build on it.
        self.settled = asyncio.Event()
        self._accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._message = 0
        self._last = 0
        self._readers: set[Wakeup] = set()

    @property
    def is_over(self) -> bool:
        return self.ended is not None or self.failure is not None

    @property
    def status(self) -> Status:
        if self.failure is not None:
            return "failed"
        if self.ended is not None:
            return ENDINGS.get(self.ended.reason, "completed")
        if self.is_stopping:
            return "stopping"
        if any(isinstance(asked, ApprovalAsked) for asked in self.pending.values()):
            return "waiting_for_approval"
        return "running" if self.turn_id else "queued"

    @property
    def last_n(self) -> int:
        return self._last

    @property
    def replies(self) -> tuple[AssistantMessage, ...]:
        return tuple(r.event.message for r in self.records if isinstance(r.event, ReplyAdded))

    @property
    def text(self) -> str:
        """The answer: the text of the last reply."""
        replies = self.replies
        return replies[-1].text if replies else ""

    @property
    def tool_calls(self) -> int:
        return sum(isinstance(record.event, ToolFinished) for record in self.records)

    @property
    def steps(self) -> int:
        return sum(isinstance(record.event, ModelCalled) for record in self.records)

    @property
    def message_total(self) -> int:
        """The number of messages, counted as in the session list."""
        kinds = [type(record.event) for record in self.records]
        return kinds.count(MessageReceived) + kinds.count(ReplyAdded) - kinds.count(Withdrawn)

    @property
    def model(self) -> str:
        names = [r.event.model for r in self.records if isinstance(r.event, ReplyAdded)]
        return names[-1] if names else ""

    def apply(self, record: Record) -> None:
        """Process an event of the session; events of other turns are ignored."""
        if record.n and record.n <= self._last:
            return
        if isinstance(record.event, TurnStarted) and not self.turn_id:
            self.earlier_replies = 0
        match record.event:
            case MessageReceived(key=self.id):
                self._message = record.n
                self._keep(record)
                return
            case TurnStarted(takes=takes) | Steered(takes=takes) if (
                self._message and self._message in takes
            ):
                self.turn_id = record.turn_id
            case ReplyAdded() if not self.turn_id:
                self.earlier_replies += 1
            case _:
                pass
        if self.turn_id and record.turn_id == self.turn_id and not self.is_over:
            self._record(record)

    def apply_all(self, records: Iterable[Record]) -> None:
        for record in records:
            self.apply(record)

    def mark_accepted(self) -> None:
        """The message is durable."""
        if not self._accepted.done():
            self._accepted.set_result(None)

    async def wait_accepted(self) -> None:
        """Wait until the message is durable; raises when it cannot be."""
        await asyncio.shield(self._accepted)

    def cancel(self) -> None:
        """End a run that has not started a turn."""
        self.ended = TurnEnded(reason="interrupted", usage=Usage())
        self.mark_accepted()
        self._notify()

    def fail(self, error: BaseException) -> None:
        """End the run with an error, without a TurnEnded."""
        self.failure = error
        if not self._accepted.done():
            self._accepted.set_exception(error)
            # Mark the exception as retrieved: there may be no waiter.
            self._accepted.exception()
        self._notify()

    def subscribe(self) -> Wakeup:
        news = Wakeup()
        self._readers.add(news)
        return news

    def unsubscribe(self, news: Wakeup) -> None:
        self._readers.discard(news)

    @property
    def has_readers(self) -> bool:
        return bool(self._readers)

    def _record(self, record: Record) -> None:
        if isinstance(record.event, Notice):
            self.delay = record.event.text if record.event.kind == "wait" else self.delay
            return
        self.delay = ""
        match record.event:
            case TextDelta(text=text):
                self.draft.pieces.append((True, text))
                self._notify()
                return
            case ReasoningDelta(text=text):
                self.draft.pieces.append((False, text))
                self._notify()
                return
            case Restarted():
                self.draft = PartialReply()
                return
            case ReplyAdded():
                self.drafts[record.n] = self.draft
                self.draft = PartialReply()
            case ApprovalAsked(id=id) | QuestionAsked(id=id) as asked:
                self.pending[id] = asked
            case ApprovalAnswered(id=id) | QuestionAnswered(id=id):
                self.pending.pop(id, None)
            case TurnEnded() as ended:
                self.ended = ended
            case _:
                pass
        if record.n:
            self._keep(record)

    def _keep(self, record: Record) -> None:
        self._last = record.n
        self.records.append(record)
        self._notify()

    def _notify(self) -> None:
        for news in self._readers:
            news.set()


class RunListener:
    """Feeds the events of a session to a run. `wakeup` wakes the task that executes the run: when
    it ends, and when it is to be stopped. `holds` keeps events back until `release`: a run whose
    message is in the journal must learn of it before it learns of the turn that takes it."""

    def __init__(self, run: Run, *, holds: bool = False) -> None:
        self._held: list[Record] | None = [] if holds else None
        self.wakeup = Wakeup()
        self.is_closed = False
        self._run = run

    def push(self, record: Record) -> None:
        run = self._run
        if self._held is not None:
            self._held.append(record)
            return
        run.apply(record)
        if run.is_over or (run.is_stopping and run.turn_id and record.n):
            self.wakeup.set()

    def release(self) -> None:
        """Pass on what was kept back."""
        held, self._held = self._held or [], None
        for record in held:
            self.push(record)

    def settle(self, settled: asyncio.Future[None]) -> None:
        """Called when no turn runs any more. An error that stopped the turn without a TurnEnded
        fails the run."""
        if settled.cancelled():
            return
        error = settled.exception()
        if error is not None and not self._run.is_over:
            self._run.fail(error)
            self.wakeup.set()

    def close(self) -> None:
        self.is_closed = True
        self.wakeup.set()
