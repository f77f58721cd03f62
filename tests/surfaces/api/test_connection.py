"""What is written to a client, and when it leaves."""

from __future__ import annotations

import asyncio
from typing import Any

from hermes.surfaces.api.connection import Gathering


class Line(asyncio.Transport):
    """The end of a transport: keeps what goes out."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = ""

    def write(self, data: Any) -> None:
        self.sent.append(data)

    def close(self) -> None:
        self.closed = "closed"

    def abort(self) -> None:
        self.closed = "aborted"

    def is_closing(self) -> bool:
        return bool(self.closed)


def gathering() -> tuple[Line, Gathering]:
    line = Line()
    return line, Gathering(line, asyncio.get_running_loop())


async def test_what_is_said_in_one_instant_is_sent_at_once() -> None:
    line, transport = gathering()
    for piece in (b"head", b"first", b""):
        transport.write(piece)
    assert line.sent == []
    await asyncio.sleep(0)
    transport.write(b"second")
    await asyncio.sleep(0)
    assert line.sent == [b"headfirst", b"second"]


async def test_who_closes_has_sent_everything() -> None:
    line, transport = gathering()
    transport.write(b"last")
    transport.write(b" words")
    transport.close()
    await asyncio.sleep(0)
    assert (line.sent, line.closed) == ([b"last words"], "closed")


async def test_what_waits_is_dropped_with_the_connection() -> None:
    line, transport = gathering()
    transport.write(b"never")
    transport.abort()
    await asyncio.sleep(0)
    assert (line.sent, line.closed) == ([], "aborted")
