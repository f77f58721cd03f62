"""Streams a run as server-sent events until it ends or the client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from hermes.surfaces.api.call import HttpRequest
from hermes.surfaces.api.follower import RunEvent, RunFollower, StreamPosition
from hermes.surfaces.api.house import OnDisconnect, ServerContext
from hermes.surfaces.api.refusals import Headers
from hermes.surfaces.api.run import Run

# Wait this long to send the response head together with the first text.
FIRST_BYTES_SECONDS = 0.05
KEEPALIVE_SECONDS = 15.0
KEEPALIVE = b": keepalive\n\n"
# A client that reads nothing for this long counts as disconnected.
STUCK_SECONDS = 60.0
EVENT_STREAM: Headers = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


class StreamEncoder(Protocol):
    """Encodes the events of a run for one protocol."""

    def begin(self) -> bytes: ...

    def encode(self, moment: RunEvent) -> bytes: ...

    def end(self, run: Run) -> bytes: ...


def sse_event(name: str, data: bytes, id: str = "") -> bytes:
    head = f"id: {id}\nevent: {name}\n" if id else f"event: {name}\n"
    return head.encode() + b"data: " + data + b"\n\n"


class _StreamTimer:
    """One timer per stream, because timers per piece would cost more than the piece. It wakes a
    silent stream for a keep-alive and ends a stream whose client stopped reading."""

    def __init__(self, wake: Callable[[], None], stuck: asyncio.Timeout) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake = wake
        self._stuck = stuck
        self._last = self._loop.time()
        self._patience = FIRST_BYTES_SECONDS
        self._is_sending = False
        self._timer = self._loop.call_later(FIRST_BYTES_SECONDS, self._beat)

    @property
    def is_silent(self) -> bool:
        return self._loop.time() >= self._last + self._patience

    async def send(self, call: HttpRequest, data: bytes, *, last: bool = False) -> None:
        self._last, self._is_sending = self._loop.time(), True
        self._patience = KEEPALIVE_SECONDS
        await call.send({"type": "http.response.body", "body": data, "more_body": not last})
        self._is_sending = False

    def stop(self) -> None:
        self._timer.cancel()

    def _beat(self) -> None:
        now = self._loop.time()
        due = self._last + (STUCK_SECONDS if self._is_sending else self._patience)
        if now >= due and self._is_sending:
            self._stuck.reschedule(now)
            return
        if now >= due:
            self._wake()
            due = now + KEEPALIVE_SECONDS
        self._timer = self._loop.call_at(due, self._beat)


async def stream_run(
    house: ServerContext,
    call: HttpRequest,
    run: Run,
    teller: StreamEncoder,
    *,
    leaving: OnDisconnect,
    after: StreamPosition | None = None,
    headers: Headers = (),
) -> None:
    follower = RunFollower(run, after)
    gone = asyncio.ensure_future(call.wait_disconnect())
    gone.add_done_callback(lambda _: follower.wake())
    house.metrics.streams += 1
    try:
        async with asyncio.timeout(None) as stuck:
            pulse = _StreamTimer(follower.wake, stuck)
            try:
                await _stream(call, run, teller, follower, pulse, gone, headers)
            finally:
                pulse.stop()
    except TimeoutError:
        pass
    finally:
        house.metrics.streams -= 1
        follower.close()
        gone.cancel()
        if leaving == "interrupt" and not run.is_over and not run.has_readers:
            await house.pool.stop_run(run)


async def _stream(
    call: HttpRequest,
    run: Run,
    teller: StreamEncoder,
    follower: RunFollower,
    pulse: _StreamTimer,
    gone: asyncio.Future[None],
    headers: Headers,
) -> None:
    start = {"type": "http.response.start", "status": 200, "headers": [*EVENT_STREAM, *headers]}
    beginning, is_begun = teller.begin(), False
    while not gone.done():
        told = b"".join([teller.encode(moment) for moment in follower.read()])
        is_done = follower.is_done
        if not is_begun and (told or is_done or pulse.is_silent):
            await call.send(start)
            told, is_begun = beginning + told, True
        elif not told and not is_done and pulse.is_silent:
            told = KEEPALIVE
        if told:
            await pulse.send(call, told)
        if is_done:
            await run.settled.wait()
            await pulse.send(call, teller.end(run), last=True)
            return
        await follower.wait()


async def wait_for_run(
    house: ServerContext, call: HttpRequest, run: Run, *, leaving: OnDisconnect
) -> None:
    """Wait for the end of a run; a disconnecting client may stop it."""
    gone = asyncio.ensure_future(call.wait_disconnect())
    over = asyncio.ensure_future(run.settled.wait())
    try:
        await asyncio.wait((gone, over), return_when=asyncio.FIRST_COMPLETED)
        if not over.done() and leaving == "interrupt" and not run.has_readers:
            await house.pool.stop_run(run)
        await over
    finally:
        gone.cancel()
        over.cancel()
