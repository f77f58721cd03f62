"""Completes replies that were truncated, empty, or broken inside a tool call."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing

from hermes.core.errors import BudgetReached, ProviderError
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Notice, Prompt, Reply, Restarted, TextDelta
from hermes.core.world import World
from hermes.providers.retrying import backoff
from hermes.providers.unfinished import Continuation, FinishedReply

OUTPUT_CAP = 32_768


class CompletingProvider:
    """Requests again until the reply is complete: text is continued where it was cut, arguments
    parse, and the reply is not empty. These extra messages never enter the transcript. When nothing
    helps, the reply holds broken calls, the partial text, or "(empty)" with a reason."""

    def __init__(self, inner: Provider, world: World, *, output_cap: int = OUTPUT_CAP) -> None:
        self._inner = inner
        self._world = world
        self._output_cap = output_cap

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        work = Continuation(prompt, output_cap=self._output_cap)
        shown = False
        while True:
            newest: Reply | None = None
            try:
                async with aclosing(self._inner.reply(work.prompt)) as stream:
                    async for item in stream:
                        if isinstance(item, Reply):
                            newest = item
                        elif isinstance(item, Restarted):
                            for delta in _restart_deltas(work):
                                yield delta
                        else:
                            shown |= not isinstance(item, Notice)
                            yield item
            except (ProviderError, BudgetReached) as error:
                # The text so far is paid for, so it is kept.
                if not work.text:
                    raise
                yield Notice(text=f"The reply may be incomplete: {error}", kind="warn")
            step = work.next_step(newest)
            if isinstance(step, FinishedReply):
                if step.unseen_text:
                    if shown:
                        yield Restarted()
                    yield TextDelta(text=step.unseen_text)
                yield step.reply
                return
            if step.voids and shown:
                shown = bool(work.text)
                for delta in _restart_deltas(work):
                    yield delta
            if step.waits:
                await self._world.clock.sleep(backoff(self._world, step.waits, slow=True))


def _restart_deltas(work: Continuation) -> Iterator[Delta]:
    """Everything shown is void except the kept text."""
    yield Restarted()
    if work.text:
        yield TextDelta(text=work.text)
