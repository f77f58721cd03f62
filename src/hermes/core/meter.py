"""Books the model calls of one session in the journal, and asks a person when a cap is reached."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hermes.codec.values import Value, replace
from hermes.core.caps import NO_CAPS, Caps
from hermes.core.errors import BudgetReached
from hermes.core.events import CallSettled, CapRaised, CapScope, ModelCalled
from hermes.core.messages import Usage
from hermes.core.prompt import Notice
from hermes.core.questions import Questions
from hermes.core.recorder import Recorder
from hermes.core.world import World

CHAT = "chat"
STOP = "Stop here"
# Calls in progress have reserved more than they will cost; most end soon.
PATIENCE_SECONDS = 20.0
_LONGEST_WAIT = 2.0


class Budgeting(Value):
    """How a session spends. `cause` is the purpose of its turns: "chat", "cron", "sub-session"."""

    caps: Caps = NO_CAPS
    cause: str = CHAT
    ask_seconds: float = 600


class SessionMeter:
    """The `core.ports.Meter` of a session. `budgeting` is called for every request, because a cap
    may be raised while a session waits."""

    def __init__(
        self,
        recorder: Recorder,
        questions: Questions,
        world: World,
        budgeting: Callable[[], Budgeting],
    ) -> None:
        self._recorder = recorder
        self._questions = questions
        self._world = world
        self._budgeting = budgeting
        self._stop: asyncio.Event | None = None
        self._first: tuple[str, str] | None = None
        self._answered = False
        self._sent: set[str] = set()
        self._reported: set[str] = set()

    def begin_reply(self, stop: asyncio.Event) -> None:
        """Start counting the calls of one reply. `stop` ends questions."""
        self._stop, self._first, self._answered = stop, None, False

    @property
    def has_booked(self) -> bool:
        """Whether a request was made for the current reply."""
        return self._first is not None

    async def reserve(self, call: ModelCalled, least: Usage) -> Usage:
        assert call.reserved is not None
        is_turn, budgeting = call.cause == CHAT, self._budgeting()
        call = replace(call, cause=self._cause(call, budgeting))
        self._tell_of_unknown_price(call, budgeting.caps)
        waited = 0.0
        while True:
            try:
                return await self._book(call, least, budgeting.caps)
            except BudgetReached as reached:
                if reached.is_passing and waited < PATIENCE_SECONDS:
                    # Other sessions may wait for what this one has to settle.
                    await self._recorder.commit()
                    seconds = min(_LONGEST_WAIT, 0.1 + waited)
                    await self._world.clock.sleep(seconds)
                    waited += seconds
                elif not (is_turn and await self._ask_for_more(reached, budgeting)):
                    raise
            budgeting = self._budgeting()

    def settle(self, settled: CallSettled) -> None:
        if settled.call in self._sent:
            self._sent.discard(settled.call)
            self._answered = settled.certain and settled.usage.output > 0
            self._recorder.note(settled)

    async def _book(self, call: ModelCalled, least: Usage, caps: Caps) -> Usage:
        self._sent.add(call.call)
        try:
            booked = await self._recorder.book(call, least, caps)
        except BudgetReached:
            self._sent.discard(call.call)
            raise
        assert booked.reserved is not None
        return booked.reserved

    def _cause(self, call: ModelCalled, budgeting: Budgeting) -> str:
        """The cause of a further request for the same reply."""
        if call.cause != CHAT:
            return call.cause
        who = (call.model, call.provider)
        if self._first is None:
            self._first = who
            return budgeting.cause
        if who != self._first:
            return "fallback"
        return "continuation" if self._answered else "retry"

    def _tell_of_unknown_price(self, call: ModelCalled, caps: Caps) -> None:
        assert call.reserved is not None
        if call.reserved.cost is not None or not caps.in_dollars or call.model in self._reported:
            return
        self._reported.add(call.model)
        text = (
            f"The price of {call.model} is not known, so dollar caps do not limit it; "
            "cap its tokens with `hermes config set budget.day.tokens 1000000`."
        )
        self._recorder.show(Notice(text=text, kind="warn"))

    async def _ask_for_more(self, reached: BudgetReached, budgeting: Budgeting) -> bool:
        """Ask the owner for a higher cap. Other people may not spend the owner's money."""
        opened = self._recorder.transcript.opened
        owner = opened is not None and opened.principal == "owner"
        if not (owner and self._questions.attended and self._stop is not None):
            return False
        raised = _raise_needed(reached, budgeting.caps)
        allow = f"Allow {format_raise(raised)} more"
        words = await self._questions.ask(
            "", f"{reached} Go on?", (allow, STOP), budgeting.ask_seconds, self._stop
        )
        if words is None or not words.lower().startswith(("allow", "y")):
            return False
        await self._recorder.commit(raised)
        return True


def _raise_needed(reached: BudgetReached, caps: Caps) -> CapRaised:
    """The amount of the cap again, or what this call needs if that is more."""
    scope: CapScope = reached.scope
    missing = reached.spent + reached.asked - reached.cap
    cap = caps.of(scope)
    if reached.unit == "usd":
        return CapRaised(scope=scope, key=reached.key, usd=max(missing, cap.usd or 0.0))
    return CapRaised(scope=scope, key=reached.key, tokens=max(int(missing), cap.tokens or 0))


def format_raise(raised: CapRaised) -> str:
    return f"${raised.usd:.2f}" if raised.usd else f"{raised.tokens:,} tokens"
