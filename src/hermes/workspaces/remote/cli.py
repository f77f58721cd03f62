"""Machines that a local program connects to: ssh, a container engine, apptainer."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.workspaces.child import Child, Sink
from hermes.workspaces.confinement.scope import ConfinementReport
from hermes.workspaces.remote.calls import RemoteProcess


def run_blocking(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Block until the work is done, in its own loop and thread, and raise its errors. Nothing that
    it leaves behind may belong to that loop."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(work())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="blocking start")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


class ProgramResult(Value):
    code: int
    out: str
    errors: str


async def run_local_program(
    words: tuple[str, ...], env: Mapping[str, str], *, timeout: float
) -> ProgramResult:
    """Return all output of a program; ToolError when it cannot be started or takes too long."""
    out, errors = bytearray(), bytearray()
    try:
        child = Child(words[0], words, env, out.extend, errors=errors.extend)
    except OSError as error:
        raise ToolError(f"{words[0]} cannot be started: {error.strerror}.") from error
    try:
        how = await child.wait(timeout=timeout)
    finally:
        if not child.ended.done():
            await child.end(grace_seconds=0)
        child.close()
    if how != "ended":
        raise ToolError(f"{' '.join(words[:3])} did not finish within {timeout:g} seconds.")
    return ProgramResult(
        code=child.ended.result(),
        out=out.decode("utf-8", "replace").strip(),
        errors=errors.decode("utf-8", "replace").strip(),
    )


NOW_SECONDS = 15.0
_READ_BYTES = 65_536


class CliConnection(Protocol):
    """The connection: a command line that runs `bash` with the standard start on the other side."""

    @property
    def protection(self) -> ConfinementReport: ...

    @property
    def words(self) -> tuple[str, ...]:
        """Return an absolute program and its arguments."""
        ...

    @property
    def env(self) -> Mapping[str, str]:
        """Return the variables of that program on this side."""
        ...

    async def open(self) -> None: ...

    def open_now(self) -> None:
        """Open, blocking; for callers outside the loop."""
        ...

    async def hibernate(self) -> None: ...

    async def close(self, *, keep: bool = False) -> None: ...


class CliMachine:
    """Keeps one bash ready that waits for its line, so that a command does not wait for programs
    and start files."""

    def __init__(self, entrance: CliConnection) -> None:
        self._entrance = entrance
        self._asking: _QuestionShell | None = None
        self._spare: CliProcess | None = None

    @property
    def protection(self) -> ConfinementReport:
        return self._entrance.protection

    async def open(self) -> None:
        await self._entrance.open()

    async def start(self, line: str, data: bytes, out: Sink, errors: Sink) -> RemoteProcess:
        raw = line.encode("utf-8", "surrogateescape")
        if b"\0" in raw:
            raise ToolError("The command contains a NUL byte. Remove it.")
        run = self._spare
        if run is None or run.ended.done():
            run = self._waiting()
        run.begin(raw + b"\0" + data, out, errors)
        self._spare = self._waiting()
        return run

    def _waiting(self) -> CliProcess:
        words = self._entrance.words
        try:
            return CliProcess(words, self._entrance.env)
        except OSError as error:
            raise ToolError(f"{words[0]} cannot be started: {error.strerror}.") from error

    def ask_now(self, line: str, data: bytes) -> bytes:
        """Ask through one bash that stays open, so that no program starts per question."""
        for attempt in (1, 2):
            if self._asking is None:
                self._entrance.open_now()
                self._asking = _QuestionShell(self._entrance.words, self._entrance.env)
            try:
                return self._asking.ask(line, data)
            except (OSError, TimeoutError) as error:
                self._asking.close()
                self._asking = None
                if attempt == 2 or isinstance(error, TimeoutError):
                    raise ToolError("The machine is not reachable now. Try again.") from error
        raise AssertionError("unreachable")

    async def hibernate(self) -> None:
        self._let_go()
        await self._entrance.hibernate()

    async def close(self, *, keep: bool = False) -> None:
        self._let_go()
        await self._entrance.close(keep=keep)

    def _let_go(self) -> None:
        if self._asking:
            self._asking.close()
            self._asking = None
        if self._spare:
            self._spare.close()
            self._spare = None


class CliProcess:
    def __init__(self, words: tuple[str, ...], env: Mapping[str, str]) -> None:
        self._out: Sink = _drop_output
        self._errors: Sink = _drop_output
        self._early: list[tuple[bool, bytes]] = []
        self._begun = False
        self._child = Child(
            words[0],
            words,
            env,
            lambda data: self._pass_on(data, is_error=False),
            errors=lambda data: self._pass_on(data, is_error=True),
            feed=b"",
        )
        self._closing: asyncio.Task[None] | None = None

    @property
    def ended(self) -> asyncio.Future[int]:
        return self._child.ended

    def begin(self, feed: bytes, out: Sink, errors: Sink) -> None:
        self._begun, self._out, self._errors = True, out, errors
        for is_error, data in self._early:
            self._pass_on(data, is_error=is_error)
        self._early.clear()
        self._child.send_input(feed)

    def close(self) -> None:
        """Kill the local program without waiting."""
        self._child.close()
        if not self._child.ended.done() and self._closing is None:
            self._closing = asyncio.ensure_future(self._child.end(grace_seconds=0))

    def _pass_on(self, data: bytes, *, is_error: bool) -> None:
        if not self._begun:
            self._early.append((is_error, data))
        else:
            (self._errors if is_error else self._out)(data)


def _drop_output(_data: bytes) -> None:
    """Drop output that arrives before a reader does."""


class _QuestionShell:
    """A remote bash that answers questions one after the other. Question, data and answer each end
    in NUL."""

    _LOOP = (
        'builtin printf "\\0"; while IFS= read -rd "" __line && IFS= read -rd "" __data; do '
        'eval "$__line"; builtin printf "\\0"; done'
    )

    def __init__(self, words: tuple[str, ...], env: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            words,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._send(self._LOOP.encode() + b"\0")
        self._receive()

    def ask(self, line: str, data: bytes) -> bytes:
        self._send(line.encode("utf-8", "surrogateescape") + b"\0" + data + b"\0")
        return self._receive()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()

    def _send(self, raw: bytes) -> None:
        assert self._process.stdin
        os.write(self._process.stdin.fileno(), raw)

    def _receive(self) -> bytes:
        assert self._process.stdout
        descriptor, received = self._process.stdout.fileno(), b""
        while not received.endswith(b"\0"):
            ready, _, _ = select.select([descriptor], [], [], NOW_SECONDS)
            if not ready:
                raise TimeoutError
            data = os.read(descriptor, _READ_BYTES)
            if not data:
                raise BrokenPipeError
            received += data
        return received[:-1]
