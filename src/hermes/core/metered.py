"""The metering middleware: every model request is booked before it is made and settled after it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from hermes.codec.values import replace
from hermes.core.errors import ProviderError
from hermes.core.events import CallSettled, ModelCalled
from hermes.core.messages import Usage
from hermes.core.ports import Meter, Provider
from hermes.core.prompt import Delta, Notice, Prompt, Reply
from hermes.core.prompt_bound import PromptBound, message_bound
from hermes.core.world import World

# A reply limited to fewer tokens is not worth its prompt.
LEAST_OUTPUT = 256
# For models whose longest output is unknown: an upper bound for almost any model, and a limit that
# almost any model accepts.
UNKNOWN_OUTPUT = 131_072
UNKNOWN_LIMIT = 16_384
# Status codes of a server that is too busy to start.
_TOO_BUSY = (503, 529)

Cost = Callable[[Usage], float | None]


class Metered:
    """Wraps the provider that sends the request. `cost` is the price of some usage in dollars, None
    when unknown; a cost that the provider reports takes precedence. `max_output` is the model's
    longest output, `cause` the purpose of the calls."""

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

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        request = await self._book(prompt)
        self._world.kill_point("model.called")
        settled = began = False
        try:
            async with aclosing(self._inner.reply(request.prompt)) as parts:
                async for part in parts:
                    if isinstance(part, Reply):
                        part = self._settle_reply(request, part)
                        settled = True
                    began |= not isinstance(part, Notice)
                    yield part
        except ProviderError as error:
            if not settled and _is_unbilled(error, began=began):
                self._settle(request, Usage(requests=1, cost=0.0))
                settled = True
            raise
        finally:
            if not settled:
                self._settle(request, request.granted, certain=False)

    async def _book(self, prompt: Prompt) -> _Request:
        prompt_tokens, longest = self._bound.of(prompt), self._longest(prompt)
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
            await self._world.pacer.turn()
        except asyncio.CancelledError:
            # The booking may be in the journal, but nothing was sent.
            self._meter.settle(_settlement(call, Usage(requests=1, cost=0.0)))
            raise
        if granted is not most:
            prompt = replace(prompt, max_tokens=self._limit(prompt, granted))
        return _Request(call, prompt, granted)

    def _settle_reply(self, request: _Request, reply: Reply) -> Reply:
        """Settle the request and add the cost to the reply."""
        usage = self._with_cost(reply.usage)
        if reply.message.stop == "cut":
            self._settle(request, request.granted, certain=False)
        elif usage.estimated and usage.cost != 0:
            # The provider reported no usage, so the visible output is the bound.
            output = min(message_bound(reply.message), request.granted.output)
            most = self._worst_case(request.granted.input, output)
            self._settle(request, most, certain=False, reply=reply)
            self._bound.learn(request.prompt, most.input)
        else:
            self._settle(request, usage, reply=reply)
            told = request.granted.input if usage.estimated else usage.prompt
            self._bound.learn(request.prompt, told)
        return replace(reply, usage=usage)

    def _settle(
        self, request: _Request, usage: Usage, *, certain: bool = True, reply: Reply | None = None
    ) -> None:
        settled = _settlement(request.call, usage, certain=certain)
        if reply is not None:
            settled = replace(settled, model=reply.model, provider=reply.provider)
        self._meter.settle(settled)

    def _longest(self, prompt: Prompt) -> int:
        ceiling = self._max_output or UNKNOWN_OUTPUT
        if prompt.max_tokens is None:
            return ceiling
        return min(prompt.max_tokens, ceiling) if self._max_output else prompt.max_tokens

    def _limit(self, prompt: Prompt, granted: Usage) -> int:
        if self._max_output is None and prompt.max_tokens is None:
            return min(granted.output, UNKNOWN_LIMIT)
        return granted.output

    def _worst_case(self, prompt_tokens: int, output: int) -> Usage:
        """The most expensive way to charge these tokens: as fresh input or as a cache write."""
        fresh = self._cost(Usage(input=prompt_tokens, output=output, requests=1))
        cached = self._cost(Usage(cache_write=prompt_tokens, output=output, requests=1))
        cost = None if fresh is None or cached is None else max(fresh, cached)
        return Usage(input=prompt_tokens, output=output, requests=1, cost=cost)

    def _with_cost(self, usage: Usage) -> Usage:
        return usage if usage.cost is not None else replace(usage, cost=self._cost(usage))


class _Request:
    """A booked request. `prompt` fits what was granted."""

    def __init__(self, call: ModelCalled, prompt: Prompt, granted: Usage) -> None:
        self.call = call
        self.prompt = prompt
        self.granted = granted


def _settlement(call: ModelCalled, usage: Usage, *, certain: bool = True) -> CallSettled:
    return CallSettled(
        call=call.call, usage=usage, certain=certain, model=call.model, provider=call.provider
    )


def _is_unbilled(error: ProviderError, *, began: bool) -> bool:
    """Certainly not billed: the request never arrived, or was rejected instead of answered."""
    if error.unsent:
        return True
    if began or error.begun or error.status is None:
        return False
    return 400 <= error.status < 500 or error.status in _TOO_BUSY
