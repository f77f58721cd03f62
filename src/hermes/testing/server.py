"""The scripted model server: real HTTP on loopback, three wire formats, replies from a script."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Awaitable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.core.errors import UsageError
from hermes.core.world import Clock, SystemClock
from hermes.testing.connection import HttpRequest, ServerConnection
from hermes.testing.http_response import HttpResponse, page, play
from hermes.testing.observers import WaitableCounter, running_in_thread, testify
from hermes.testing.request import Request, Violation
from hermes.testing.responder import Bill, Prices, ScriptedResponder, body_of
from hermes.testing.steps import Rule, Step, says
from hermes.testing.wires.table import WireName, wire_of

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

    @property
    def whole_steps(self) -> tuple[Step, ...]:
        return tuple(says(step) if isinstance(step, str) else step for step in self.steps)


def read_script(path: Path) -> ScriptFile:
    try:
        return decode(ScriptFile, path.read_bytes())
    except OSError as error:
        raise UsageError(f"The script {path} cannot be read: {error.strerror}.") from error
    except DecodeError as error:
        raise UsageError(f"The script {path} cannot be used: {error}.") from error


ACCEPTING_ROUNDS = 4


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
        self._desk = ScriptedResponder(
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
        *,
        loop: bool = False,
        strict: bool = True,
        window: int | None = None,
        prices: Prices | None = None,
        models: Iterable[str | JsonObject] = ("scripted",),
        pages: Mapping[str, JsonValue] | None = None,
        log: Path | None = None,
        keep: int | None = None,
        clock: Clock | None = None,
    ) -> AbstractContextManager[ScriptedServer]:
        """The same server in its own thread, for tests that are not async."""
        return running_in_thread(
            cls(
                steps,
                loop=loop,
                strict=strict,
                window=window,
                prices=prices,
                models=models,
                pages=pages,
                log=log,
                keep=keep,
                clock=clock,
            )
        )

    @property
    def url(self) -> str:
        """Without a path. OpenAI-style clients need `url + "/v1"`, messages clients `url`."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def violations(self) -> list[Violation]:
        return self._desk.violations

    @property
    def bill(self) -> Bill:
        return self._desk.bill

    @property
    def steps_left(self) -> int:
        return self._desk.script.left

    def add(self, *steps: Step) -> None:
        """Append steps to the script."""
        self._desk.script.add(*steps)

    async def __aenter__(self) -> ScriptedServer:
        running = asyncio.get_running_loop()
        self._server = await running.create_server(
            lambda: ServerConnection(self._serve, self._register),
            "127.0.0.1",
            self._port,
            backlog=1024,
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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

    def _register(self, connection: ServerConnection, opened: bool) -> None:
        if opened:
            self._connections.add(connection)
        else:
            self._connections.discard(connection)

    def _serve(self, incoming: HttpRequest, connection: ServerConnection) -> None:
        request = self._record(incoming)
        keep = incoming.headers.get("connection", "").lower() != "close"
        if request.wire is None:
            self._send(self._page(request), connection, keep=keep)
            return
        chosen = self._desk.choose(request, request.wire)
        if isinstance(chosen, Step):
            answer = self._desk.write(request, request.wire, chosen)
            self._send(answer, connection, keep=keep)
        else:
            self._run_task(
                connection, self._serve_later(request, request.wire, chosen, connection, keep)
            )

    def _record(self, incoming: HttpRequest) -> Request:
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
            body=body_of(incoming.raw),
        )
        kept.append(request)
        if self._keep is not None:
            del kept[: max(0, len(kept) - self._keep)]
        if self._log is not None:
            _write_line(self._log, request)
        testify(request)
        tally.add()
        return request

    def _page(self, request: Request) -> HttpResponse:
        path = request.path.partition("?")[0]
        if path in self._pages:
            return page(200, self._pages[path])
        if request.method == "GET" and path.endswith("/models"):
            return page(
                200, model_page(self._models, anthropic="anthropic-version" in request.headers)
            )
        return page(404, {"error": {"message": f"Not found: {request.method} {path}"}})

    async def _serve_later(
        self,
        request: Request,
        wire: WireName,
        chosen: Awaitable[Step],
        connection: ServerConnection,
        keep: bool,
    ) -> None:
        try:
            step = await chosen
        except Exception as error:
            step = self._desk.reject_rule_error(request, wire, error)
        await self._play(self._desk.write(request, wire, step), connection, keep)

    def _send(self, answer: HttpResponse, connection: ServerConnection, *, keep: bool) -> None:
        if answer.instant:
            connection.write(b"".join(answer.pieces()))
            _finish(answer, connection, keep)
        else:
            self._run_task(connection, self._play(answer, connection, keep))

    async def _play(self, answer: HttpResponse, connection: ServerConnection, keep: bool) -> None:
        await play(answer, connection, self._clock)
        _finish(answer, connection, keep)

    def _run_task(self, connection: ServerConnection, work: Coroutine[None, None, None]) -> None:
        task = connection.run(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget_task)

    def _forget_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() and self._server is not None and self._server.is_serving():
            self.departed.add()


def _finish(answer: HttpResponse, connection: ServerConnection, keep: bool) -> None:
    if answer.end == "reset":
        connection.reset()
    else:
        connection.done(keep=keep and answer.end == "whole")


def _write_line(log: Path, request: Request) -> None:
    """The request without its raw bytes, written before it is answered."""
    line = {
        "n": request.n,
        "method": request.method,
        "path": request.path,
        "wire": request.wire,
        "at": request.at,
        "headers": request.headers,
        "body": request.body,
    }
    with log.open("ab") as file:
        file.write(encode(line) + b"\n")


async def _run(script: ScriptFile, port: int, log: Path | None) -> None:
    """Serve until a signal; print the URL at the start and the violations at the end."""
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    server = ScriptedServer(
        script.whole_steps,
        loop=script.loop,
        strict=script.strict,
        window=script.window,
        prices=script.prices,
        models=script.models,
        pages=script.pages,
        port=port,
        log=log,
    )
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
    given = parser.parse_args(arguments)
    try:
        script = read_script(given.script)
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    asyncio.run(_run(script, given.port, given.log))
    return 0


if __name__ == "__main__":
    sys.exit(main())
