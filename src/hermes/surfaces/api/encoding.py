"""Encodes runs for clients: tool calls, results, files and server-sent events."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from hermes.codec.values import JsonObject, Value
from hermes.commands.tool_calls import image_data_url, image_of
from hermes.core.errors import HermesError
from hermes.core.events import Event, ReplyAdded, ToolFinished, ToolStarted
from hermes.core.messages import ToolCall, ToolResult, Usage
from hermes.hosting.follower import RunEvent, RunFollower, StreamPosition
from hermes.hosting.run import Run
from hermes.surfaces.api.http import (
    NO_RETRY,
    ApiRequest,
    Headers,
    HttpError,
    crash_error,
    http_error,
)
from hermes.surfaces.api.server_context import OnDisconnect, ServerContext


class CallStarted(Value):
    call: ToolCall


class CallFinished(Value):
    call: ToolCall
    result: ToolResult
    seconds: float


class ToolCallTracker:
    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}
        self._begun: set[str] = set()

    def apply(self, event: Event) -> Iterator[CallStarted | CallFinished]:
        match event:
            case ReplyAdded(message=message):
                self._calls.update({call.id: call for call in message.calls})
            case ToolStarted(call_id=id) if id in self._calls and id not in self._begun:
                self._begun.add(id)
                yield CallStarted(call=self._calls[id])
            case ToolFinished(result=result, seconds=seconds):
                id = result.call_id
                call = self._calls.pop(id, None) or ToolCall(id=id, name=result.name)
                if id not in self._begun:
                    yield CallStarted(call=call)
                self._begun.discard(id)
                yield CallFinished(call=call, result=result, seconds=seconds)
            case _:
                return


FINISH_REASONS = {"length": "length", "filtered": "content_filter"}


def run_error(run: Run) -> HttpError | None:
    """The error of a failed run, None for a successful one."""
    match run.failure:
        case None:
            pass
        case HermesError() as error:
            return http_error(error)
        case error:
            return crash_error(error)
    assert run.ended is not None
    match run.ended.reason:
        case "failed" | "crashed":
            code = run.ended.detail or "agent_error"
            return HttpError(502, code, run.ended.error or "The turn failed.", headers=NO_RETRY)
        case "paused":
            message = run.ended.error or "A spending cap is reached."
            return HttpError(402, "budget_reached", message, headers=NO_RETRY)
        case _:
            return None


def finish_reason(run: Run) -> str:
    if run.ended is not None and run.ended.reason == "budget":
        return "length"
    replies = run.replies
    return FINISH_REASONS.get(replies[-1].stop, "stop") if replies else "stop"


def usage_of(run: Run) -> Usage:
    return run.ended.usage if run.ended is not None else Usage()


def run_images(run: Run) -> tuple[str, ...]:
    """Paths and URLs of generated images."""
    results = (r.event.result for r in run.records if isinstance(r.event, ToolFinished))
    return tuple(image for result in results if (image := image_of(result)))


def hermes_fields(run: Run) -> JsonObject:
    images = run_images(run)
    return {
        **({"images": list(images)} if images else {}),
        "session_id": run.session_id,
        "run_id": run.id,
        "tool_calls": run.tool_calls,
        "iterations": run.steps,
        "cost_usd": usage_of(run).cost,
        "interrupted": run.status == "cancelled",
    }


LINE = re.compile(r"^[ \t]*MEDIA:[ \t]*(/\S.*?)[ \t]*$", re.MULTILINE)
Images = Callable[[], tuple[str, ...]]

INLINE = re.compile(r"!\[([^\]\n]*)\]\(data:image/[^)\s]*\)")


def replace_paths(text: str) -> str:
    """Replace file paths by file names."""
    return LINE.sub(lambda found: Path(found[1]).name, text) if "MEDIA:" in text else text


async def inline_images(run: Run, *, any_file: bool, text: str | None = None) -> str:
    """The answer (or `text`) with inline images; generated images that it does not mention follow
    at the end. Without `any_file` only images of this turn are inlined, because a client must not
    read through an answer what its agent may not read."""
    whole = run.text if text is None else text
    return await asyncio.to_thread(_inline_text, whole, run_images(run), any_file)


def _inline_text(text: str, images: tuple[str, ...], any_file: bool) -> str:
    media = MediaFilter(lambda: images, inline=True, any_file=any_file)
    text = media.feed(text) + media.flush()
    return "\n\n".join(part for part in (text, *media.remaining_images()) if part)


def _markdown(image: str) -> str:
    """The file name alone when it is not an image, missing or too large."""
    name = re.sub(r"[\[\]\n]", "_", Path(image).name)
    url = image_data_url(image)
    return f"![{name}]({url})" if url else name


class MediaFilter:
    """Rewrites a streamed answer: a line that may name a file is buffered until it is complete.
    `images` returns the images generated so far. With `inline`, images replace such lines, and
    images that were not mentioned follow at the end."""

    def __init__(self, images: Images, *, inline: bool, any_file: bool) -> None:
        self._images = images
        self._inline = inline
        self._any_file = any_file
        self._held = ""
        self._is_start = True
        self._shown: set[str] = set()

    def feed(self, text: str) -> str:
        """The text that can be sent now."""
        if not self._is_start and "\n" not in text:
            return text
        whole = self._held + text
        begun = "" if self._is_start else whole[: whole.index("\n") + 1]
        rest = whole[len(begun) :]
        lines, mark, last = rest.rpartition("\n")
        self._is_start = _may_name(last)
        self._held = last if self._is_start else ""
        return begun + self._complete_lines(lines + mark) + ("" if self._is_start else last)

    def flush(self) -> str:
        """The buffered text at the end of a reply."""
        held, self._held, self._is_start = self._held, "", True
        return self._complete_lines(held)

    def remaining_images(self) -> list[str]:
        """Generated images that the answer does not mention, as text."""
        if not self._inline:
            return []
        return [_markdown(image) for image in self._images() if image not in self._shown]

    def _complete_lines(self, text: str) -> str:
        if "MEDIA:" not in text:
            return text
        return LINE.sub(lambda found: self._line(found[1]), text)

    def _line(self, path: str) -> str:
        self._shown.add(path)
        shows = self._inline and (self._any_file or path in self._images())
        return _markdown(path) if shows else Path(path).name


def _may_name(line: str) -> bool:
    """Whether a line with this beginning may name a file."""
    text = line.lstrip(" \t")
    return text.startswith("MEDIA:") or "MEDIA:".startswith(text)


def strip_images(text: str) -> str:
    """The answer without inline images, as a client may send it back."""
    return INLINE.sub(r"\1", text) if "](data:image/" in text else text


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

    def encode(self, event: RunEvent) -> bytes: ...

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

    async def send(self, request: ApiRequest, data: bytes, *, last: bool = False) -> None:
        self._last, self._is_sending = self._loop.time(), True
        self._patience = KEEPALIVE_SECONDS
        await request.send({"type": "http.response.body", "body": data, "more_body": not last})
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
    server: ServerContext,
    request: ApiRequest,
    run: Run,
    encoder: StreamEncoder,
    *,
    on_leave: OnDisconnect,
    after: StreamPosition | None = None,
    headers: Headers = (),
) -> None:
    follower = RunFollower(run, after)
    disconnected = asyncio.ensure_future(request.wait_disconnect())
    disconnected.add_done_callback(lambda _: follower.wake())
    server.metrics.streams += 1
    try:
        async with asyncio.timeout(None) as stuck:
            timer = _StreamTimer(follower.wake, stuck)
            try:
                await _stream(request, run, encoder, follower, timer, disconnected, headers)
            finally:
                timer.stop()
    except TimeoutError:
        pass
    finally:
        server.metrics.streams -= 1
        follower.close()
        disconnected.cancel()
        if on_leave == "interrupt" and not run.is_over and not run.has_readers:
            await server.run_executor.stop(run)


async def _stream(
    request: ApiRequest,
    run: Run,
    encoder: StreamEncoder,
    follower: RunFollower,
    timer: _StreamTimer,
    disconnected: asyncio.Future[None],
    headers: Headers,
) -> None:
    start = {"type": "http.response.start", "status": 200, "headers": [*EVENT_STREAM, *headers]}
    beginning, is_begun = encoder.begin(), False
    while not disconnected.done():
        data = b"".join([encoder.encode(event) for event in follower.read()])
        is_done = follower.is_done
        if not is_begun and (data or is_done or timer.is_silent):
            await request.send(start)
            data, is_begun = beginning + data, True
        elif not data and not is_done and timer.is_silent:
            data = _keep_alive(run)
        if data:
            await timer.send(request, data)
        if is_done:
            await run.settled.wait()
            await timer.send(request, encoder.end(run), last=True)
            return
        await follower.wait()


def _keep_alive(run: Run) -> bytes:
    """A comment, which clients ignore; it says why nothing arrives if the run knows."""
    return f": waiting: {' '.join(run.delay.split())}\n\n".encode() if run.delay else KEEPALIVE


async def wait_for_run(
    server: ServerContext, request: ApiRequest, run: Run, *, on_leave: OnDisconnect
) -> None:
    """Wait for the end of a run; a disconnecting client may stop it."""
    disconnected = asyncio.ensure_future(request.wait_disconnect())
    over = asyncio.ensure_future(run.settled.wait())
    try:
        await asyncio.wait((disconnected, over), return_when=asyncio.FIRST_COMPLETED)
        if not over.done() and on_leave == "interrupt" and not run.has_readers:
            await server.run_executor.stop(run)
        await over
    finally:
        disconnected.cancel()
        over.cancel()
