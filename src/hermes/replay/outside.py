"""A model outside of the replay that asks it: inside, no request gets past the tape."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from contextvars import copy_context

from hermes.core.errors import HermesError
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Prompt, Reply

_Item = Delta | Reply | HermesError | None


class OutsideProvider:
    """Asks `inner` as if from where this was made."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner
        self._context = copy_context()

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        items: asyncio.Queue[_Item] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._ask(prompt, items), context=self._context.copy())
        try:
            while (item := await items.get()) is not None:
                if isinstance(item, HermesError):
                    raise item
                yield item
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _ask(self, prompt: Prompt, items: asyncio.Queue[_Item]) -> None:
        try:
            async with aclosing(self._inner.reply(prompt)) as replies:
                async for item in replies:
                    items.put_nowait(item)
        except HermesError as error:
            items.put_nowait(error)
        finally:
            items.put_nowait(None)
