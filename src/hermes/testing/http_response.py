"""HTTP responses of the scripted server, complete or broken on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Literal, NamedTuple

from hermes.codec.json import encode
from hermes.codec.values import JsonValue
from hermes.core.world import Clock
from hermes.testing.connection import ServerConnection
from hermes.testing.steps import Break, Failure, Pace
from hermes.testing.wires.draft import Frame, ReplyDraft, error_bytes, error_headers, wire_json
from hermes.testing.wires.table import WIRES, WireName

REASONS = {status.value: status.phrase for status in HTTPStatus} | {529: "Overloaded"}
COMMENT = b": keep-alive\n\n"
PING: Frame = ("ping", {"type": "ping"})
LONG_SECONDS = 3600.0

End = Literal["whole", "cut", "reset", "hold"]


class WireResponse(NamedTuple):
    """The bytes of a response and how they are sent."""

    head: bytes
    # The pieces of the body; a streamed response sends each as an HTTP chunk.
    frames: tuple[bytes, ...] = ()
    chunked: bool = False
    end: End = "whole"
    pace: Pace = Pace()
    comment_seconds: float = 0.0

    @property
    def instant(self) -> bool:
        pace = self.pace
        slow = pace.first_seconds or pace.between_seconds or pace.drip
        return self.end != "hold" and not slow

    def pieces(self) -> Iterator[bytes]:
        """The bytes on the wire, in order."""
        yield self.head
        if not self.chunked:
            yield from self.frames
            return
        for frame in self.frames:
            yield chunk(frame)
        if self.end == "whole":
            yield chunk(b"")


async def play(answer: WireResponse, connection: ServerConnection, clock: Clock) -> None:
    """Send with all pauses. Never returns for a response that hangs."""
    pace = answer.pace
    if pace.first_seconds:
        await clock.sleep(pace.first_seconds)
    for number, piece in enumerate(answer.pieces()):
        if number > 1 and pace.between_seconds:
            await clock.sleep(pace.between_seconds)
        size = pace.drip or len(piece) or 1
        for at in range(0, len(piece), size):
            connection.write(piece[at : at + size])
            await connection.drain()
            if pace.drip:
                await clock.sleep(pace.drip_seconds)
    while answer.end == "hold":
        await clock.sleep(answer.comment_seconds or LONG_SECONDS)
        if answer.comment_seconds:
            connection.write(chunk(COMMENT))


def page(status: int, value: JsonValue) -> WireResponse:
    """A small JSON response outside the wire formats."""
    raw = encode(value)
    return WireResponse(head(status, {"content-type": "application/json"}, length=len(raw)), (raw,))


def refusal(failure: Failure, wire: WireName, *, now: float, pace: Pace) -> WireResponse:
    """An error response as the vendors of the wire format send it."""
    if failure.status == 0:
        return WireResponse(b"", end="cut", pace=pace)
    anthropic = wire == "messages"
    raw, kind = error_bytes(failure, anthropic=anthropic)
    headers = {"content-type": kind} | error_headers(failure, anthropic=anthropic, now=now)
    return WireResponse(head(failure.status, headers, length=len(raw)), (raw,), pace=pace)


def reply(draft: ReplyDraft, wire: WireName, *, stream: bool) -> WireResponse:
    """The complete response of a step."""
    step = draft.step
    if stream:
        headers = {"content-type": "text/event-stream; charset=utf-8"} | step.headers
        frames = tuple(_frames(draft, wire))
        return WireResponse(head(200, headers, length=None), frames, chunked=True, pace=step.pace)
    headers = {"content-type": "application/json"} | step.headers
    raw = wire_json(WIRES[wire].body(draft))
    return WireResponse(head(200, headers, length=len(raw)), (raw,), pace=step.pace)


def _frames(draft: ReplyDraft, wire: WireName) -> Iterator[bytes]:
    flaws = draft.step.flaws
    between = COMMENT + (sse(PING) if wire == "messages" else b"")
    for event in WIRES[wire].events(draft):
        frame = between + sse(event) if "keep_alive" in flaws else sse(event)
        yield frame.replace(b"\n", b"\r\n") if "crlf" in flaws else frame


def sse(frame: Frame) -> bytes:
    name, data = frame
    raw = data.encode() if isinstance(data, str) else wire_json(data)
    return b"event: %b\ndata: %b\n\n" % (name.encode(), raw) if name else b"data: %b\n\n" % raw


def chunk(data: bytes) -> bytes:
    """An HTTP chunk; the empty chunk ends the body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def head(status: int, headers: dict[str, str], *, length: int | None) -> bytes:
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines.append("transfer-encoding: chunked" if length is None else f"content-length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def break_response(
    whole: WireResponse, broken: Break, draft: ReplyDraft, wire: WireName
) -> WireResponse:
    how = broken.how
    if broken.before_head:
        end: End = how if how in ("cut", "reset") else "hold"
        return whole._replace(head=b"", frames=(), chunked=False, end=end)
    if how in ("cut", "reset"):
        return whole._replace(frames=tuple(_frames_before(whole, broken)), end=how)
    if whole.chunked:
        return _break_stream(whole, broken, draft, wire)
    # A body without events.
    if how == "hold":
        return whole._replace(frames=(), end="hold")
    if how == "garbage":
        raw, kind = whole.frames[0][: len(whole.frames[0]) // 2], "application/json"
    else:
        failure = broken.failure or Failure(status=503)
        raw, kind = error_bytes(failure, anthropic=wire == "messages")
    return whole._replace(head=head(200, {"content-type": kind}, length=len(raw)), frames=(raw,))


def _break_stream(
    whole: WireResponse, broken: Break, draft: ReplyDraft, wire: WireName
) -> WireResponse:
    kept = whole.frames[: broken.after_chunks]
    if broken.how == "hold":
        return whole._replace(frames=kept, end="hold", comment_seconds=broken.comment_seconds)
    if broken.how == "error":
        failure = broken.failure or Failure(status=503)
        event = WIRES[wire].error_event(draft, failure, len(kept))
        return whole._replace(frames=(*kept, sse(event)))
    # The next event is sent with truncated data, and then complete.
    at = min(broken.after_chunks or 0, len(whole.frames) - 1)
    frame = whole.frames[at]
    start = frame.rindex(b"data: ") + len(b"data: ")
    line_end = b"\r\n" if frame.endswith(b"\r\n") else b"\n"
    torn = frame[: (start + len(frame)) // 2] + line_end * 2
    return whole._replace(frames=(*whole.frames[:at], torn, *whole.frames[at:]))


def _frames_before(whole: WireResponse, broken: Break) -> Iterator[bytes]:
    count = broken.after_bytes
    if count is None and whole.chunked:
        yield from whole.frames[: broken.after_chunks]
        return
    if count is None:
        # A body without events is cut in half.
        count = len(whole.frames[0]) // 2 if broken.after_chunks else 0
    for frame in whole.frames:
        if count <= 0:
            return
        yield frame[:count]
        count -= len(frame)
