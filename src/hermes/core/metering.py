"""Meters model requests: books the upper bound of each before it is made, settles it after."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import NamedTuple

from hermes.codec.tokens import tokens_of_size
from hermes.codec.values import Value, replace
from hermes.core.caps import NO_CAPS, Caps
from hermes.core.errors import BudgetReached, ProviderError
from hermes.core.events import CallSettled, CapRaised, CapScope, ModelCalled
from hermes.core.gate import Questions
from hermes.core.messages import Usage
from hermes.core.ports import Meter, Provider
from hermes.core.prompt import Delta, Notice, Prompt, ReasoningDelta, Reply, TextDelta
from hermes.core.prompt_bound import PromptBound, message_bound
from hermes.core.recorder import Recorder
from hermes.core.usage_check import Cost, UsageCheck, reply_characters
from hermes.core.world import World

# A reply limited to fewer tokens is not worth its prompt.
LEAST_OUTPUT = 256
# For models whose longest output is unknown: an upper bound for almost any model, and a limit that
# almost any model accepts.
UNKNOWN_OUTPUT = 131_072
UNKNOWN_LIMIT = 16_384
# Status codes of a server that is too busy to start.
_TOO_BUSY = (503, 529)


class Metered:
    """A provider that books the requests of another provider. A plausible cost that the provider
    reports takes precedence over `cost`. `max_output` is the model's longest output, `cause` the
    purpose of the calls."""

    def __init__(
        self,
        inner: Provider,
        meter: Meter,
        *,
        world: World,
        model: str,
        provider: str,
        cost: Cost,
        max_output: int | None,
        cause: str = "chat",
    ) -> None:
        self._inner = inner
        self._meter = meter
        self._world = world
        self._model = model
        self._provider = provider
        self._cost = cost
        self._max_output = max_output
        self._cause = cause
        self._bound = PromptBound()
        self._check = UsageCheck(cost)
        self._warned = False

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        request = await self._book(prompt)
        self._world.kill_point("model.called")
        settled = began = False
        received = 0
        try:
            async with aclosing(self._inner.reply(request.prompt)) as parts:
                async for part in parts:
                    if isinstance(part, Reply):
                        doubt = self._check.find_doubt(
                            part.usage, part.message, request.characters, request.granted
                        )
                        part = self._settle_reply(request, part, doubt)
                        settled = True
                        if doubt and not self._warned:
                            self._warned = True
                            yield self._warning(doubt)
                    elif isinstance(part, TextDelta | ReasoningDelta):
                        received += len(part.text)
                    began |= not isinstance(part, Notice)
                    yield part
        except ProviderError as error:
            if not settled and _is_unbilled(error, began=began):
                self._settle(request.call, Usage(requests=1, cost=0.0))
                settled = True
            raise
        finally:
            if not settled:
                self._settle(request.call, self._most(request, received), certain=False)

    async def _book(self, prompt: Prompt) -> _Request:
        prompt_tokens = self._bound.of(prompt)
        limits = [limit for limit in (prompt.max_tokens, self._max_output) if limit]
        longest = min(limits, default=UNKNOWN_OUTPUT)
        most = self._worst_case(prompt_tokens, longest)
        least = self._worst_case(prompt_tokens, min(longest, LEAST_OUTPUT))
        call = ModelCalled(
            model=self._model,
            provider=self._provider,
            call=self._world.new_id("call"),
            cause=self._cause,
            reserved=most,
        )
        try:
            granted = await self._meter.reserve(call, least)
            await self._world.pacer.wait()
        except asyncio.CancelledError:
            # The booking may be in the journal, but nothing was sent.
            self._settle(call, Usage(requests=1, cost=0.0))
            raise
        if granted is not most:
            limit = granted.output
            if self._max_output is None and prompt.max_tokens is None:
                limit = min(limit, UNKNOWN_LIMIT)
            prompt = replace(prompt, max_tokens=limit)
        return _Request(call, prompt, granted, self._bound.characters(prompt))

    def _settle_reply(self, request: _Request, reply: Reply, doubt: str) -> Reply:
        """Settle the request and add the cost to the reply. An implausible report counts like a
        missing one."""
        usage = reply.usage
        if doubt:
            usage = self._check.estimate(reply.message, request.characters)
        elif usage.cost is None:
            usage = replace(usage, cost=self._cost(usage))
        if reply.message.stop == "cut":
            most = self._most(request, reply_characters(reply.message))
            self._settle(request.call, most, certain=False)
        elif usage.estimated and usage.cost != 0:
            # There is no usable report, so the visible output is the bound.
            output = message_bound(reply.message)
            if usage.output <= request.granted.output:
                # Otherwise the server ignored the limit.
                output = min(output, request.granted.output)
            most = self._worst_case(request.granted.input, output)
            self._settle(request.call, most, certain=False, reply=reply, corrected=bool(doubt))
            self._bound.learn(request.prompt, most.input)
        else:
            self._settle(request.call, usage, reply=reply)
            prompt_tokens = request.granted.input if usage.estimated else usage.prompt
            self._bound.learn(request.prompt, prompt_tokens)
        return replace(reply, usage=usage)

    def _most(self, request: _Request, characters: int) -> Usage:
        """Return the upper bound of a call that sent so much: a server may ignore its limit."""
        output = tokens_of_size(characters)
        if output <= request.granted.output:
            return request.granted
        return self._worst_case(request.granted.input, output)

    def _settle(
        self,
        call: ModelCalled,
        usage: Usage,
        *,
        certain: bool = True,
        reply: Reply | None = None,
        corrected: bool = False,
    ) -> None:
        by = reply or call
        self._meter.settle(
            CallSettled(
                call=call.call,
                usage=usage,
                certain=certain,
                model=by.model,
                provider=by.provider,
                corrected=corrected,
            )
        )

    def _warning(self, doubt: str) -> Notice:
        text = (
            f"{self._provider} reported {doubt}, which cannot be right; Hermes counts the most that"
            " such a call can cost instead. `hermes cost` shows these calls as corrected."
        )
        return Notice(text=text, kind="warn")

    def _worst_case(self, prompt_tokens: int, output: int) -> Usage:
        """Return the most expensive way to charge these tokens: as fresh input or as a cache
        write."""
        fresh = self._cost(Usage(input=prompt_tokens, output=output, requests=1))
        cached = self._cost(Usage(cache_write=prompt_tokens, output=output, requests=1))
        cost = None if fresh is None or cached is None else max(fresh, cached)
        return Usage(input=prompt_tokens, output=output, requests=1, cost=cost)


class _Request(NamedTuple):
    """A booked request. `prompt` fits what was granted and has this many characters."""

    call: ModelCalled
    prompt: Prompt
    granted: Usage
    characters: int


def _is_unbilled(error: ProviderError, *, began: bool) -> bool:
    """Whether a request was certainly not billed: it never arrived, or was rejected instead of
    answered."""
    if error.unsent:
        return True
    if began or error.begun or error.status is None:
        return False
    return 400 <= error.status < 500 or error.status in _TOO_BUSY


CHAT = "chat"
STOP = "Stop here"
# Calls in progress have reserved more than they will cost; most end soon.
PATIENCE_SECONDS = 20.0
_LONGEST_WAIT = 2.0


class Budgeting(Value):
    """How a session spends."""

    caps: Caps = NO_CAPS
    # The purpose of its turns: "chat", "cron" or "sub-session".
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
        """Return the cause to book: that of the turn for its first request, then why the reply
        needs another one."""
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
        answer = await self._questions.ask(
            "", f"{reached} Go on?", (allow, STOP), budgeting.ask_seconds, self._stop
        )
        if answer is None or not answer.lower().startswith(("allow", "y")):
            return False
        await self._recorder.commit(raised)
        return True


def _raise_needed(reached: BudgetReached, caps: Caps) -> CapRaised:
    """Return the raise to ask for: the amount of the cap again, or the amount that this call needs,
    whichever is larger."""
    scope: CapScope = reached.scope
    missing = reached.spent + reached.asked - reached.cap
    cap = caps.of(scope)
    if reached.unit == "usd":
        return CapRaised(scope=scope, key=reached.key, usd=max(missing, cap.usd or 0.0))
    return CapRaised(scope=scope, key=reached.key, tokens=max(int(missing), cap.tokens or 0))


def format_raise(raised: CapRaised) -> str:
    return f"${raised.usd:.2f}" if raised.usd else f"{raised.tokens:,} tokens"
