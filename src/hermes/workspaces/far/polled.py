"""A remote bash over nothing but "run this command and return its text", as most cloud services
offer it: input and output go through remote files, and are fetched in pieces."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Callable
from itertools import count

from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.workspaces.bash_text import shell_quote
from hermes.workspaces.child import Sink
from hermes.workspaces.far.machine import READ_LINE

# One argument holds at most 128 KiB, and base64 makes four bytes of three.
PIECE_BYTES = 60_000
FETCH_BYTES = 300_000
PAUSES = (0.05, 0.1, 0.2, 0.4)
SLOWEST_SECONDS = 1.0
CLOSE_SECONDS = 10.0
PLACE = "/tmp/.hermes-calls"


class ExecutionResult(Value):
    code: int
    text: str


# Blocks; ToolError when the service is unreachable or refuses.
Execute = Callable[[str], ExecutionResult]


class PolledExecutor:
    """Starts lines through `execute`; `name` keeps the files of different machines apart."""

    def __init__(self, execute: Execute, name: str) -> None:
        self._execute = execute
        self._name = name
        self._numbers = count()
        self._runs: set[PolledProcess] = set()

    async def start(self, line: str, data: bytes, out: Sink, errors: Sink) -> PolledProcess:
        raw = line.encode("utf-8", "surrogateescape")
        if b"\0" in raw:
            raise ToolError("The command contains a NUL byte. Remove it.")
        place = f"{PLACE}/{self._name}-{next(self._numbers)}"
        run = PolledProcess(self._execute, place, out, errors)
        await run.begin(raw + b"\0" + data)
        self._runs = {each for each in self._runs if not each.gone} | {run}
        return run

    async def close(self) -> None:
        """Wait until all remote input and output files are removed, up to a limit."""
        tasks = [each.end() for each in self._runs]
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
        self._runs.clear()

    def ask_now(self, line: str, data: bytes) -> bytes:
        packed = base64.b64encode(data).decode()
        script = f"__data=$(printf %s {packed} | base64 -d; printf .); __data=${{__data%.}}; {line}"
        done = self._execute(f"bash -c {shell_quote(f'{{ {script}; }} | base64 -w0')}")
        return _decode_output(done.text.strip())


class PolledProcess:
    def __init__(self, execute: Execute, place: str, out: Sink, errors: Sink) -> None:
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._execute = execute
        self._place = place
        self._sinks = (out, errors)
        self._fetched = [0, 0]
        self._closed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    @property
    def gone(self) -> bool:
        return self._following is not None and self._following.done()

    async def begin(self, feed: bytes) -> None:
        """Start only after all input has arrived."""
        place = self._place
        await self._do(f"umask 077; mkdir -p {place} && : >{place}/in")
        for at in range(0, len(feed), PIECE_BYTES):
            piece = base64.b64encode(feed[at : at + PIECE_BYTES]).decode()
            await self._do(f"printf %s {piece} | base64 -d >>{place}/in")
        line = (
            # The input may contain secrets, so it is removed even if Hermes dies.
            f"exec <{place}/in; rm -f {place}/in; "
            f"bash --norc --noprofile -c {shell_quote(READ_LINE)} >{place}/out "
            f"2>{place}/err; echo $? >{place}/code; mv {place}/code {place}/done"
        )
        # Detached: the command of the service itself ends at once.
        detached = f"setsid bash -c {shell_quote(line)} </dev/null >/dev/null 2>&1 &"
        await self._do(f"bash -c {shell_quote(detached)}")
        self._following = asyncio.ensure_future(self._follow())

    def close(self) -> None:
        self._closed.set()
        if not self.ended.done():
            self.ended.set_result(-1)

    def end(self) -> asyncio.Task[None]:
        """Close; the task ends when its files are removed."""
        assert self._following is not None
        self.close()
        return self._following

    async def _do(self, command: str) -> str:
        done = await asyncio.to_thread(self._execute, command)
        if done.code:
            raise ToolError(f"The service failed: {done.text.strip()[:300]}")
        return done.text

    async def _follow(self) -> None:
        """Follow until it has ended and everything has arrived, it was closed, or the service is
        unreachable."""
        quiet = 0
        try:
            while not self._closed.is_set():
                code, fresh = await self._fetch()
                if code is not None and not fresh:
                    self._end(code)
                    return
                quiet = 0 if fresh else quiet + 1
                if not fresh:
                    pauses = PAUSES[quiet - 1 : quiet] or (SLOWEST_SECONDS,)
                    await self._pause(pauses[0])
        except ToolError:
            self._end(-1)
        finally:
            # Again if a file was created meanwhile; a removed folder gets no new files.
            remove = f"rm -rf {self._place} || rm -rf {self._place}"
            with contextlib.suppress(ToolError):
                await asyncio.to_thread(self._execute, remove)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closed.wait()

    async def _fetch(self) -> tuple[int | None, bool]:
        """Ask first whether it has ended: its earlier output is then certainly visible."""
        parts = [f"cat {self._place}/done 2>/dev/null || echo"]
        for name, start in zip(("out", "err"), self._fetched, strict=True):
            show = f"tail -c +{start + 1} {self._place}/{name} 2>/dev/null | head -c {FETCH_BYTES}"
            parts.append(f"{show} | base64 -w0; echo")
        lines = (await self._do("; ".join(parts))).split("\n")
        fresh = False
        for at, sink in enumerate(self._sinks):
            data = _decode_output(lines[at + 1] if len(lines) > at + 1 else "")
            self._fetched[at] += len(data)
            if data and not self._closed.is_set():
                fresh = True
                sink(data)
        return (int(lines[0]) if lines[0].strip() else None), fresh

    def _end(self, code: int) -> None:
        if not self.ended.done():
            self.ended.set_result(code)


def _decode_output(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ToolError("The service sent an unexpected answer.") from error
