"""Notices about background processes: watched words and a queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from hermes.core.ports import ProcessNotice

APART_SECONDS = 15.0
STRIKES = 3
OVERALL_SECONDS = 10.0
OVERALL_CAP = 15


class NoticeLimit:
    """The limit on notices of all watched processes together."""

    def __init__(self) -> None:
        self._times: list[float] = []

    def may_notify(self, now: float) -> bool:
        self._times = [time for time in self._times if now - time < OVERALL_SECONDS]
        if len(self._times) >= OVERALL_CAP:
            return False
        self._times.append(now)
        return True


class OutputWatch:
    """The watched words of one process. After three windows in a row with dropped hits, the words
    count as noise and `disabled` is true."""

    def __init__(self, words: tuple[str, ...], overall: NoticeLimit) -> None:
        self.disabled = not words
        self._words = words
        self._overall = overall
        self._window_start: float | None = None
        self._dropped = False
        self._strikes = 0
        self._rest = ""

    def find_hits(self, text: str) -> list[str]:
        """Return the complete lines of the output that contain one of the words."""
        *lines, self._rest = (self._rest + text).split("\n")
        if len(self._rest) > 8_000:
            lines, self._rest = [*lines, self._rest], ""
        if self.disabled:
            return []
        return [line for line in lines if any(word in line for word in self._words)]

    def find_last_hits(self) -> list[str]:
        """Return hits in the unfinished last line."""
        return self.find_hits("\n")

    def may_notify(self, now: float) -> bool:
        """Return whether a notice of new hits may go out now."""
        start = self._window_start
        if start is not None and now - start < APART_SECONDS:
            return self._drop()
        self._strikes = self._strikes + 1 if self._dropped else 0
        self._dropped = False
        self.disabled = self.disabled or self._strikes >= STRIKES
        if self.disabled:
            return False
        self._window_start = now
        return self._overall.may_notify(now) or self._drop()

    def _drop(self) -> bool:
        self._dropped = True
        return False


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
