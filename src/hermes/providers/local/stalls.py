"""Waits for a silent local server as long as it makes progress."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Literal, Protocol, TypeVar

from hermes.core.errors import ProviderError
from hermes.core.world import Clock
from hermes.net.http import HttpClient, Timeouts
from hermes.providers.endpoint import Endpoint
from hermes.providers.model_servers import root_of
from hermes.providers.wire.events import objects_of, parse_json
from hermes.providers.wire.format import request_headers

Activity = Literal["busy", "alive", "idle", "gone"]
"""busy   it reports work
alive  it responds but reports nothing about work
idle   it reports no work
gone   it does not respond
"""

_SECONDS = 5.0
_MAX_BYTES = 4 * 1024 * 1024
_RUNNING = re.compile(rb"^vllm:num_requests_(?:running|waiting)\S*\s+([0-9.e+]+)", re.MULTILINE)
# Paths that report work first, then paths that any server answers.
_PATHS = ("/slots", "/metrics", "/health", "/api/ps", "/v1/models")


class ActivityProbe:
    """Asks the path that responded last, and all of them when it no longer does."""

    def __init__(self, http: HttpClient, endpoint: Endpoint) -> None:
        self._http = http
        self._root = root_of(endpoint.url)
        self._headers = {**request_headers(endpoint), "accept": "*/*"}
        self._path = ""

    async def check(self) -> Activity:
        for path in (self._path, *_PATHS) if self._path else _PATHS:
            found = await self._ask(path)
            if found is not None:
                self._path = path
                return found
        self._path = ""
        return "gone"

    async def _ask(self, path: str) -> Activity | None:
        timeouts = Timeouts(connect=_SECONDS, read=_SECONDS)
        try:
            async with (
                asyncio.timeout(_SECONDS),
                self._http.get(
                    self._root + path, headers=self._headers, timeouts=timeouts
                ) as answer,
            ):
                body = await answer.read(_MAX_BYTES)
                status = answer.status
        except (ProviderError, TimeoutError):
            return None
        return _sign(path, status, body)


def _sign(path: str, status: int, body: bytes) -> Activity | None:
    if path == "/health" and status == 503:
        # The model is still loading.
        return "busy"
    if path == "/v1/models" and status < 500:
        return "alive"
    if status != 200:
        return None
    if path not in ("/slots", "/metrics"):
        return "alive"
    if path == "/slots":
        slots = (slot.get("is_processing") for slot in objects_of(parse_json(body)))
        work = [flag for flag in slots if isinstance(flag, bool)]
    else:
        work = [float(count) > 0 for count in _RUNNING.findall(body)]
    return ("busy" if any(work) else "idle") if work else None


T = TypeVar("T")

ALIVE_SECONDS = 4 * 3600.0
IDLE_SECONDS = 180.0
GONE_SECONDS = 60.0
_DEADLINES: dict[Activity, tuple[float, str]] = {
    "alive": (ALIVE_SECONDS, "has sent nothing for {hours} hours; restart it"),
    "idle": (IDLE_SECONDS, "has lost the request and is idle; try again"),
    "gone": (GONE_SECONDS, "no longer responds; check that it is running"),
}
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
        limit, why = _DEADLINES.get(sign, (float("inf"), ""))
        if seconds >= limit:
            why = why.format(hours=round(seconds / 3600))
            text = f"The server at {self._host} {why}."
            raise ProviderError(text, reason="timeout", retryable=True)
