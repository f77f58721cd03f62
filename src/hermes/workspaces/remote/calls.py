"""The interface of remote machines, and calls to their bash."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from hermes.codec.values import Value
from hermes.core.concurrency import wait_for_first
from hermes.core.errors import ToolError
from hermes.core.world import World
from hermes.workspaces.child import Sink
from hermes.workspaces.confinement.scope import ConfinementReport

# Reads the line from stdin up to a NUL and leaves the rest of stdin to it. No login shell treats
# any of it specially, and the line never appears in a process list.
READ_LINE = 'IFS= read -rd "" __line; eval "$__line"'
BASH = ("bash", "--norc", "--noprofile", "-c", READ_LINE)


class RemoteProcess(Protocol):
    """A bash on another machine."""

    @property
    def ended(self) -> asyncio.Future[int]:
        """Completes when the connection ends, which may be before the bash ends."""
        ...

    def close(self) -> None:
        """Disconnect; remote processes may run on."""
        ...


class RemoteMachine(Protocol):
    @property
    def protection(self) -> ConfinementReport: ...

    async def open(self) -> None:
        """Make the machine usable, also after a lost connection; raise ToolError that says what is
        wrong."""
        ...

    async def start(self, feed: bytes, out: Sink, errors: Sink) -> RemoteProcess:
        """Start a bash that reads its line from `feed` up to a NUL, and the rest as its input.
        ToolError only if it certainly did not start."""
        ...

    def ask_now(self, line: str, data: bytes) -> bytes:
        """Return the output of a short line. Blocks. Raises ToolError."""
        ...

    async def hibernate(self) -> None:
        """Release resources that cost money; files stay. The next call wakes the machine up."""
        ...

    async def close(self, *, keep: bool = False) -> None:
        """Close the machine. With `keep`, processes run on if the machine can outlive Hermes."""
        ...


ANSWER_SECONDS = 60.0
LOST = (
    "The connection was lost; it is unknown whether the command finished. Check before repeating."
)


class RemoteAnswer(Value):
    code: int
    out: bytes
    errors: str


class RemoteCall:
    """One running bash line. `reports` receives the side channel; `final` is its last message, once
    all output has arrived, or None when the connection was lost before."""

    def __init__(self, mark: bytes, out: Sink, reports: Sink) -> None:
        self.final: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self._mark = mark
        self._out = _MarkedStream(mark, out, self._settle)
        self._side = _MarkedStream(mark, reports, self._settle)
        self._run: RemoteProcess | None = None

    async def begin(self, machine: RemoteMachine, line: str, data: bytes) -> None:
        mark = self._mark.decode()
        marked = f"builtin echo {mark}; builtin echo {mark} >&2; {line}"
        raw = marked.encode("utf-8", "surrogateescape")
        if b"\0" in raw:
            raise ToolError("The command contains a NUL byte. Remove it.")
        self._run = await machine.start(raw + b"\0" + data, self._out, self._side)
        # Closing reads what is left in the pipes.
        self._run.ended.add_done_callback(lambda _ended: self.close())

    def close(self) -> None:
        if self._run:
            self._run.close()
        if not self.final.done():
            self.final.set_result(None)

    @property
    def connection_error(self) -> str:
        """Return error output of the connection from before the remote side was reached."""
        return self._side.before.decode("utf-8", "replace").strip()

    def _settle(self) -> None:
        if self._out.last is not None and self._side.last is not None and not self.final.done():
            self.final.set_result(self._side.last)


class _MarkedStream:
    """Passes on what a stream contains between two marks. The last message and a line break follow
    the second mark."""

    def __init__(self, mark: bytes, sink: Sink, ended: Callable[[], None]) -> None:
        self._begin = mark + b"\n"
        self._end = b"\0" + mark + b" "
        self._sink = sink
        self._ended = ended
        self._held = b""
        self._begun = False
        self.before = b""
        self.last: bytes | None = None

    def __call__(self, data: bytes) -> None:
        if self.last is not None:
            return
        self._held += data
        if not self._begun:
            self.before, mark, rest = self._held.partition(self._begin)
            if not mark:
                return
            self._begun, self._held = True, rest
        at = self._held.find(self._end)
        passed = len(self._held) - _partial_match_length(self._held, self._end) if at < 0 else at
        if passed:
            self._sink(self._held[:passed])
            self._held = self._held[passed:]
        if at >= 0 and b"\n" in self._held:
            self.last = self._held[len(self._end) :].split(b"\n")[0]
            self._ended()


def _partial_match_length(data: bytes, word: bytes) -> int:
    """Return how many of the last bytes may be the beginning of the word."""
    sizes = range(min(len(data), len(word) - 1), 0, -1)
    return next((size for size in sizes if word.startswith(data[-size:])), 0)


class RemoteCalls:
    """Makes calls to one machine."""

    def __init__(self, machine: RemoteMachine, world: World) -> None:
        self.machine = machine
        self._world = world
        self._running: set[RemoteCall] = set()
        self._coming = 0
        self._used = world.clock.monotonic()
        # A machine does not hibernate while it is being woken up.
        self._waking = asyncio.Lock()

    def new_mark(self) -> str:
        return self._world.new_id("mark", digits=16)

    async def stream(
        self, line: Callable[[str], str], data: bytes, out: Sink, reports: Sink
    ) -> RemoteCall:
        """Run a line that is built with its mark and ends with `report_code(mark, text)`."""
        mark = self.new_mark()
        call = RemoteCall(mark.encode(), out, reports)
        self._coming += 1
        try:
            async with self._waking:
                await self.machine.open()
        finally:
            self._coming -= 1
        self._running.add(call)
        call.final.add_done_callback(lambda _final: self._on_end(call))
        try:
            await call.begin(self.machine, line(mark), data)
        except BaseException:
            call.close()
            raise
        return call

    def idle_seconds(self) -> float:
        """Return the seconds since the last call ended; 0 while one runs."""
        busy = self._running or self._coming
        return 0.0 if busy else self._world.clock.monotonic() - self._used

    async def hibernate(self, idle_seconds: float) -> bool:
        """Hibernate the machine; False when a call came in the meantime. Raises ToolError."""
        async with self._waking:
            if self.idle_seconds() < idle_seconds:
                return False
            await self.machine.hibernate()
            return True

    def _on_end(self, call: RemoteCall) -> None:
        self._running.discard(call)
        self._used = self._world.clock.monotonic()

    async def answer(
        self, body: str, data: bytes = b"", *, timeout: float = ANSWER_SECONDS
    ) -> RemoteAnswer:
        """Return everything that the bash code prints, and its exit code. TimeoutError,
        ToolError."""
        out, errors = bytearray(), bytearray()
        call = await self.stream(
            lambda mark: f"( {body}\n); __status=$?; {report_code(mark, '$__status')}",
            data,
            out.extend,
            errors.extend,
        )
        try:
            if await wait_for_first(call.final, timeout=timeout) == "timeout":
                raise TimeoutError
            final = call.final.result()
        finally:
            call.close()
        if final is None:
            raise ToolError(f"{LOST} {call.connection_error}".strip())
        return RemoteAnswer(
            code=int(final), out=bytes(out), errors=errors.decode("utf-8", "replace").strip()
        )


def report_code(mark: str, text: str, *, out: int = 1, side: int = 2) -> str:
    """Return bash that sends the last message of a call after the end of its output."""
    both = f'{mark} "{text}" >&{side}'
    return f"builtin printf '\\0%s \\n' {mark} >&{out}; builtin printf '\\0%s %s\\n' {both}"
