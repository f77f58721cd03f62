"""The scripted model server: real HTTP on loopback, three wire formats, replies from a script."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypedDict, Unpack

from msgspec.structs import asdict

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.core.errors import UsageError
from hermes.core.world import Clock, SystemClock
from hermes.testing.connection import RawRequest, ServerConnection
from hermes.testing.http_response import WireResponse, page, play
from hermes.testing.observers import WaitableCounter, notify_observers, running_in_thread
from hermes.testing.request import Request, Violation
from hermes.testing.responder import Bill, Prices, ScriptedResponder, body_of
from hermes.testing.steps import Rule, Step, says
from hermes.testing.wires.table import named_body, wire_of

BORN = 1_700_000_000


def model_page(models: Iterable[str | JsonObject], *, anthropic: bool) -> JsonObject:
    """A name gets default fields; an object overrides them."""
    named = [{"id": model} if isinstance(model, str) else model for model in models]
    if not anthropic:
        entries = [{"object": "model", "created": BORN, "owned_by": "tests"} | m for m in named]
        return {"object": "list", "data": entries}
    usual = {"type": "model", "created_at": "2023-11-14T22:13:20Z", "lifecycle": "active"}
    entries = [usual | {"display_name": m.get("id")} | m for m in named]
    ids = [entry.get("id") for entry in entries] or [None]
    return {"data": entries, "has_more": False, "first_id": ids[0], "last_id": ids[-1]}


class ScriptFile(Value, forbid_unknown_fields=True):
    """The arguments of a ScriptedServer. A string is a step that says it."""

    steps: tuple[Step | str, ...] = ()
    loop: bool = False
    strict: bool = True
    window: int | None = None
    prices: Prices | None = None
    models: tuple[str | JsonObject, ...] = ("scripted",)
    pages: JsonObject = {}


def read_script(path: Path) -> ScriptFile:
    try:
        return decode(ScriptFile, path.read_bytes())
    except OSError as error:
        raise UsageError(f"The script {path} cannot be read: {error.strerror}.") from error
    except DecodeError as error:
        raise UsageError(f"The script {path} cannot be used: {error}.") from error


ACCEPTING_ROUNDS = 4


class ServerOptions(TypedDict, total=False):
    """The options of a ScriptedServer."""

    loop: bool
    strict: bool
    window: int | None
    prices: Prices | None
    models: Iterable[str | JsonObject]
    pages: Mapping[str, JsonValue] | None
    log: Path | None
    keep: int | None
    port: int
    clock: Clock | None


class ScriptedServer:
    """Answers chat completions, responses and messages requests under any prefix.

    `requests` are the model calls and `probes` all other requests, in the order of arrival.
    `received`, `probed` and `departed` (clients that disconnected early) are counters that a test
    can wait for. `violations` should be empty at the end of a test. `pages` are JSON responses for
    further paths; `log` is a file that gets one JSON line per request. `keep` is how many of the
    newest requests stay in memory; None for all."""

    def __init__(
        self,
        steps: Iterable[Step] | Rule[Request] = (),
        *,
        loop: bool = False,
        strict: bool = True,
        window: int | None = None,
        prices: Prices | None = None,
        models: Iterable[str | JsonObject] = ("scripted",),
        pages: Mapping[str, JsonValue] | None = None,
        log: Path | None = None,
        keep: int | None = None,
        port: int = 0,
        clock: Clock | None = None,
    ) -> None:
        self._responder = ScriptedResponder(
            steps, loop=loop, strict=strict, window=window, prices=prices
        )
        self._models = tuple(models)
        self._pages = dict(pages or {})
        self._log = log
        self._keep = keep
        self._port = port
        self._clock = clock or SystemClock()
        self._server: asyncio.Server | None = None
        self._connections: set[ServerConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.requests: list[Request] = []
        self.probes: list[Request] = []
        self.received = WaitableCounter()
        self.probed = WaitableCounter()
        self.departed = WaitableCounter()

    @classmethod
    def in_thread(
        cls,
        steps: Iterable[Step] | Rule[Request] = (),
        **options: Unpack[ServerOptions],
    ) -> AbstractContextManager[ScriptedServer]:
        """Run the server in its own thread, for tests that are not async."""
        return running_in_thread(cls(steps, **options))

    @property
    def url(self) -> str:
        """The address without a path. OpenAI-style clients need `url + "/v1"`, messages
        clients `url`."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def violations(self) -> list[Violation]:
        return self._responder.violations

    @property
    def bill(self) -> Bill:
        return self._responder.bill

    @property
    def steps_left(self) -> int:
        return self._responder.script.left

    def add(self, *steps: Step) -> None:
        """Append steps to the script."""
        self._responder.script.add(*steps)

    async def __aenter__(self) -> ScriptedServer:
        running = asyncio.get_running_loop()
        self._server = await running.create_server(
            lambda: ServerConnection(self._serve, self._connections),
            "127.0.0.1",
            self._port,
            backlog=1024,
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_error: object) -> None:
        assert self._server is not None
        for listener in self._server.sockets:
            asyncio.get_running_loop().remove_reader(listener)
        # A connection that was just accepted cannot be closed yet, nor after the server is closed.
        for _ in range(ACCEPTING_ROUNDS):
            await asyncio.sleep(0)
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for connection in tuple(self._connections):
            connection.abort()
        # Aborted connections close in the next iteration of the loop.
        await asyncio.sleep(0)

    def _serve(self, incoming: RawRequest, connection: ServerConnection) -> None:
        """Answers at once where nothing has to be awaited, otherwise in a task."""
        request = self._record(incoming)
        answer: WireResponse | Awaitable[WireResponse]
        if request.wire is None:
            answer = self._page(request)
        else:
            answer = self._responder.answer(request, request.wire)
        if isinstance(answer, WireResponse) and answer.instant:
            connection.write(b"".join(answer.pieces()))
            _finish(answer, connection, incoming)
            return

        async def play_later() -> None:
            whole = answer if isinstance(answer, WireResponse) else await answer
            await play(whole, connection, self._clock)
            _finish(whole, connection, incoming)

        task = connection.run(play_later())
        self._tasks.add(task)
        task.add_done_callback(self._forget_task)

    def _record(self, incoming: RawRequest) -> Request:
        wire = wire_of(incoming.path) if incoming.method == "POST" else None
        kept, tally = (self.probes, self.probed) if wire is None else (self.requests, self.received)
        request = Request(
            n=tally.count + 1,
            method=incoming.method,
            path=incoming.path,
            headers=incoming.headers,
            raw=incoming.raw,
            at=self._clock.now(),
            wire=wire,
            body=named_body(body_of(incoming.raw), incoming.path),
        )
        kept.append(request)
        if self._keep is not None:
            del kept[: max(0, len(kept) - self._keep)]
        if self._log is not None:
            fields = ("n", "method", "path", "wire", "at", "headers", "body")
            line = encode({name: getattr(request, name) for name in fields})
            with self._log.open("ab") as file:
                file.write(line + b"\n")
        notify_observers(request)
        tally.add()
        return request

    def _page(self, request: Request) -> WireResponse:
        path = request.path.partition("?")[0]
        if path in self._pages:
            return page(200, self._pages[path])
        if request.method == "GET" and path.endswith("/models"):
            anthropic = "anthropic-version" in request.headers
            return page(200, model_page(self._models, anthropic=anthropic))
        return page(404, {"error": {"message": f"Not found: {request.method} {path}"}})

    def _forget_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() and self._server is not None and self._server.is_serving():
            self.departed.add()


def _finish(answer: WireResponse, connection: ServerConnection, incoming: RawRequest) -> None:
    keep = incoming.headers.get("connection", "").lower() != "close"
    if answer.end == "reset":
        connection.reset()
    else:
        connection.done(keep=keep and answer.end == "whole")


async def _run(script: ScriptFile, port: int, log: Path | None) -> None:
    """Serve until a signal; print the URL at the start and the violations at the end."""
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    steps = (says(step) if isinstance(step, str) else step for step in script.steps)
    options = {name: value for name, value in asdict(script).items() if name != "steps"}
    server = ScriptedServer(steps, port=port, log=log, **options)
    async with server:
        _print_line({"url": server.url})
        await over.wait()
    _print_line(
        {
            "requests": server.received.count,
            "steps_left": server.steps_left,
            "violations": server.violations,
            "micros": server.bill.micros,
        }
    )


def _print_line(line: JsonObject) -> None:
    sys.stdout.buffer.write(encode(line) + b"\n")
    sys.stdout.buffer.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m hermes.testing.server", description="Serve a scripted model on loopback."
    )
    parser.add_argument("--script", type=Path, required=True, help="JSON file with the steps")
    parser.add_argument("--port", type=int, default=0, help="default: any free port")
    parser.add_argument("--log", type=Path, help="file that gets one JSON line per request")
    options = parser.parse_args(arguments)
    try:
        script = read_script(options.script)
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    asyncio.run(_run(script, options.port, options.log))
    return 0


if __name__ == "__main__":
    sys.exit(main())
