"""Broken responses: cut, reset, held, garbled or failed at a chosen event or byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hermes.testing.answer import HttpResponse, head, sse
from hermes.testing.steps import Break, Failure
from hermes.testing.wires.draft import ReplyDraft
from hermes.testing.wires.errors import error_bytes
from hermes.testing.wires.table import WIRES, WireName


def break_response(
    whole: HttpResponse, broken: Break, draft: ReplyDraft, wire: WireName
) -> HttpResponse:
    if broken.before_head:
        end = broken.how if broken.how in ("cut", "reset") else "hold"
        return whole._replace(head=b"", frames=(), chunked=False, end=end)
    match broken.how:
        case "cut" | "reset" as end:
            return whole._replace(frames=tuple(_frames_before(whole, broken)), end=end)
        case "hold":
            return _hold(whole, broken)
        case "garbage":
            return _garble(whole, broken)
        case "error":
            return _fail(whole, broken, draft, wire)


def _frames_before(whole: HttpResponse, broken: Break) -> Iterable[bytes]:
    if broken.after_bytes is not None:
        return _first_bytes(whole.frames, broken.after_bytes)
    if whole.chunked:
        return whole.frames[: broken.after_chunks]
    # A body without events is cut in half.
    return _first_bytes(whole.frames, len(whole.frames[0]) // 2 if broken.after_chunks else 0)


def _first_bytes(frames: Iterable[bytes], count: int) -> Iterator[bytes]:
    for frame in frames:
        if count <= 0:
            return
        yield frame[:count]
        count -= len(frame)


def _hold(whole: HttpResponse, broken: Break) -> HttpResponse:
    if not whole.chunked:
        return whole._replace(frames=(), end="hold")
    kept = whole.frames[: broken.after_chunks]
    return whole._replace(frames=kept, end="hold", comment_seconds=broken.comment_seconds)


def _garble(whole: HttpResponse, broken: Break) -> HttpResponse:
    if whole.chunked:
        at = min(broken.after_chunks or 0, len(whole.frames) - 1)
        torn = _truncate_event(whole.frames[at])
        return whole._replace(frames=(*whole.frames[:at], torn, *whole.frames[at:]))
    half = whole.frames[0][: len(whole.frames[0]) // 2]
    return _body(whole, half, "application/json")


def _truncate_event(frame: bytes) -> bytes:
    """An event of the same name with truncated data."""
    start = frame.rindex(b"data: ") + len(b"data: ")
    line_end = b"\r\n" if frame.endswith(b"\r\n") else b"\n"
    return frame[: (start + len(frame)) // 2] + line_end * 2


def _fail(whole: HttpResponse, broken: Break, draft: ReplyDraft, wire: WireName) -> HttpResponse:
    failure = broken.failure or Failure(status=503)
    if not whole.chunked:
        return _body(whole, *error_bytes(failure, anthropic=wire == "messages"))
    kept = whole.frames[: broken.after_chunks]
    event = WIRES[wire].error_event(draft, failure, len(kept))
    return whole._replace(frames=(*kept, sse(event)))


def _body(whole: HttpResponse, raw: bytes, kind: str) -> HttpResponse:
    """A different body with the same status 200."""
    changed = head(200, {"content-type": kind}, length=len(raw))
    return whole._replace(head=changed, frames=(raw,))
