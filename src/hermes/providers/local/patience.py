"""Waits for a local server as long as it makes progress."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from hermes.core.errors import ProviderError
from hermes.core.world import Clock
from hermes.providers.local.pulse import Activity

T = TypeVar("T")

ALIVE_SECONDS = 4 * 3600.0
IDLE_SECONDS = 180.0
GONE_SECONDS = 60.0
_POLL_SECONDS = 15.0
_FIRST_SECONDS = 1.0


class ActivityCheck(Protocol):
    async def check(self) -> Activity: ...


class LocalStallPolicy:
    """Processing a long prompt can take an hour without a byte. While the server reports work,
    there is no limit. A server that only responds gets four hours of silence, one that reports no
    work three minutes (the request was lost), and one that does not respond one minute."""

    def __init__(
        self,
        pulse: ActivityCheck,
        clock: Clock,
        *,
        host: str,
        first_seconds: float = _FIRST_SECONDS,
        poll_seconds: float = _POLL_SECONDS,
    ) -> None:
        self._probe = pulse
        self._clock = clock
        self._host = host
        self._first_seconds = first_seconds
        self._poll_seconds = poll_seconds

    async def wait_for(self, attempt: Callable[[float], Awaitable[T]]) -> T:
        """Short waits cost nothing beyond the attempt."""
        try:
            return await attempt(self._first_seconds)
        except TimeoutError:
            pass
        waiting = asyncio.ensure_future(attempt(float("inf")))
        try:
            await self._watch(waiting)
            return await waiting
        finally:
            waiting.cancel()
            await asyncio.wait((waiting,))

    async def _watch(self, waiting: asyncio.Future[T]) -> None:
        """Returns when the wait is over; raises ProviderError when waiting is pointless."""
        since = self._clock.monotonic()
        sign: Activity = "busy"
        while True:
            nap = asyncio.ensure_future(self._clock.sleep(self._poll_seconds))
            try:
                await asyncio.wait((waiting, nap), return_when=asyncio.FIRST_COMPLETED)
            finally:
                nap.cancel()
            if waiting.done():
                return
            newest = await self._probe.check()
            if waiting.done():
                return
            now = self._clock.monotonic()
            since = since if newest == sign else now
            sign = newest
            self._check_deadline(sign, now - since)

    def _check_deadline(self, sign: Activity, seconds: float) -> None:
        match sign:
            case "busy":
                return
            case "alive" if seconds >= ALIVE_SECONDS:
                why = f"has sent nothing for {seconds / 3600:.0f} hours; restart it"
            case "idle" if seconds >= IDLE_SECONDS:
                why = "has lost the request and is idle; try again"
            case "gone" if seconds >= GONE_SECONDS:
                why = "no longer responds; check that it is running"
            case _:
                return
        raise ProviderError(f"The server at {self._host} {why}.", reason="timeout", retryable=True)
