"""A provider whose requests all pass one interceptor: a recorder or a player."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Prompt, Reply
from hermes.providers.http import Interceptor, current_interceptor


class InterceptedProvider:
    """The outermost wrapper: covers retries, other keys and other models."""

    def __init__(self, inner: Provider, tap: Interceptor) -> None:
        self._inner = inner
        self._tap = tap

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        token = current_interceptor.set(self._tap)
        try:
            async with aclosing(self._inner.reply(prompt)) as items:
                async for item in items:
                    yield item
        finally:
            # If another task closes the generator, there is nothing to reset.
            with suppress(ValueError):
                current_interceptor.reset(token)
