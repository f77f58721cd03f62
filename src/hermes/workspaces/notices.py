"""A queue of notices with keys for one reader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from hermes.core.ports import ProcessNotice


class NoticeQueue:
    def __init__(self) -> None:
        self._waiting: dict[str, ProcessNotice] = {}
        self._arrived = asyncio.Event()

    def add(self, notice: ProcessNotice) -> None:
        self._waiting[notice.key] = notice
        self._arrived.set()

    def drop(self, key: str) -> None:
        """Remove a notice that was delivered in another way."""
        self._waiting.pop(key, None)

    async def stream(self) -> AsyncIterator[ProcessNotice]:
        """Yield notices without end. A notice is removed once the reader asks for the next one."""
        while True:
            while not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
            notice = next(iter(self._waiting.values()))
            yield notice
            self._waiting.pop(notice.key, None)
