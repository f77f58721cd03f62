"""Faults: each function takes a step and returns one that fails on the wire."""

from __future__ import annotations

from hermes.codec.values import JsonObject, replace
from hermes.testing.steps import Break, Failure, Flaw, Pace, Step


def flawed(step: Step, *flaws: Flaw) -> Step:
    return replace(step, flaws=(*step.flaws, *flaws))


def paced(
    step: Step, *, chunk: int = 24, first_seconds: float = 0.0, between_seconds: float = 0.0
) -> Step:
    """Send pieces of `chunk` characters (0: all in one), with pauses before the first byte and
    between events."""
    pace = Pace(chunk=chunk, first_seconds=first_seconds, between_seconds=between_seconds)
    return replace(step, pace=pace)


def dripped(step: Step, *, size: int = 1, seconds: float = 0.0) -> Step:
    """Send the response in writes of `size` bytes, which may split lines and characters."""
    pace = replace(step.pace, drip=size, drip_seconds=seconds)
    return replace(step, pace=pace)


def cut(
    step: Step,
    *,
    after_chunks: int | None = None,
    after_bytes: int | None = None,
    reset: bool = False,
) -> Step:
    """The connection is lost after this many events, or bytes of the body."""
    how = Break(how="reset" if reset else "cut", after_chunks=after_chunks, after_bytes=after_bytes)
    return replace(step, breaks=how)


def hangs(
    step: Step | None = None,
    *,
    after_chunks: int | None = None,
    comment_seconds: float = 0.0,
) -> Step:
    """No data until the client disconnects: from the start, or after this many events. With
    `comment_seconds`, a keep-alive comment is sent at that interval."""
    how = Break(
        how="hold",
        after_chunks=after_chunks,
        before_head=after_chunks is None,
        comment_seconds=comment_seconds,
    )
    return replace(step or Step(), breaks=how)


def fails_midway(
    step: Step, *, after_chunks: int, status: int = 503, message: str = "", kind: str = ""
) -> Step:
    """An error event in a response that began with status 200; nothing follows it."""
    failure = Failure(status=status, message=message, kind=kind)
    how = Break(how="error", after_chunks=after_chunks, failure=failure)
    return replace(step, breaks=how)


def garbled(step: Step, *, after_chunks: int) -> Step:
    """Return the step with a garbled event: after this many events, the next one is sent truncated
    and then again complete, with all the rest."""
    return replace(step, breaks=Break(how="garbage", after_chunks=after_chunks))


def expecting(step: Step, part: JsonObject) -> Step:
    """Return the step for a request whose body contains this; any other is a violation."""
    return replace(step, expect=part)
