"""A run poured into a stream of server-sent events, until it ends or the client is gone."""

from __future__ import annotations

import asyncio
from typing import Protocol

from hermes.surfaces.api.call import Call
from hermes.surfaces.api.follower import Follower, Mark, Moment
from hermes.surfaces.api.house import House, Leaving
from hermes.surfaces.api.refusals import Headers
from hermes.surfaces.api.run import Run

KEEPALIVE_SECONDS = 15.0
# A reader that takes nothing for so long has gone without saying so.
STUCK_SECONDS = 60.0
EVENTS: Headers = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


class Teller(Protocol):
    """The words of one protocol for what happens in a run."""

    def begin(self) -> bytes: ...

    def tell(self, moment: Moment) -> bytes: ...

    def end(self, run: Run) -> bytes: ...


def event(name: str, data: bytes, id: str = "") -> bytes:
    head = f"id: {id}\nevent: {name}\n" if id else f"event: {name}\n"
    return head.encode() + b"data: " + data + b"\n\n"


async def pour(
    house: House,
    call: Call,
    run: Run,
    teller: Teller,
    *,
    leaving: Leaving,
    after: Mark | None = None,
    headers: Headers = (),
) -> None:
    follower = Follower(run, after)
    gone = asyncio.ensure_future(call.gone())
    gone.add_done_callback(lambda _: follower.wake())
    house.tally.streams += 1
    try:
        await call.send(
            {"type": "http.response.start", "status": 200, "headers": [*EVENTS, *headers]}
        )
        await _send(call, teller.begin())
        while not gone.done():
            await _send(call, b"".join([teller.tell(moment) for moment in follower.read()]))
            if follower.is_done:
                await run.settled.wait()
                await _send(call, teller.end(run), last=True)
                return
            if not await follower.wait(KEEPALIVE_SECONDS):
                await _send(call, b": keepalive\n\n")
    except TimeoutError:
        pass
    finally:
        house.tally.streams -= 1
        follower.close()
        gone.cancel()
        if leaving == "interrupt" and not run.is_over and not run.has_readers:
            await house.desk.stop(run)


async def whole(house: House, call: Call, run: Run, *, leaving: Leaving) -> None:
    """Wait for the end of a run. A client that goes away meanwhile may want it to stop."""
    gone = asyncio.ensure_future(call.gone())
    over = asyncio.ensure_future(run.settled.wait())
    try:
        await asyncio.wait((gone, over), return_when=asyncio.FIRST_COMPLETED)
        if not over.done() and leaving == "interrupt" and not run.has_readers:
            await house.desk.stop(run)
        await over
    finally:
        gone.cancel()
        over.cancel()


async def _send(call: Call, data: bytes, *, last: bool = False) -> None:
    if data or last:
        async with asyncio.timeout(STUCK_SECONDS):
            await call.send({"type": "http.response.body", "body": data, "more_body": not last})
