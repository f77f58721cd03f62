"""Machines that a local program connects to: ssh, a container engine, apptainer."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from hermes.codec.values import Value
from hermes.core.concurrency import start_daemon_thread
from hermes.core.errors import ToolError
from hermes.workspaces.child import Child, Sink
from hermes.workspaces.remote.calls import RemoteMachine, RemoteProcess


def run_blocking(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Block until the work is done, in its own loop and thread, and raise its errors. Nothing that
    it leaves behind may belong to that loop."""
    start_daemon_thread(lambda: asyncio.run(work())).result()


class ProgramResult(Value):
    code: int
    out: str
    errors: str


async def run_local_program(
    argv: tuple[str, ...], env: Mapping[str, str], *, timeout: float
) -> ProgramResult:
    """Return all output of a program; raise ToolError when it cannot be started or takes too
    long."""
    out, errors = bytearray(), bytearray()
    try:
        child = Child(argv[0], argv, env, out.extend, errors=errors.extend)
    except OSError as error:
        raise ToolError(f"{argv[0]} cannot be started: {error.strerror}.") from error
    try:
        how = await child.wait(timeout=timeout)
    finally:
        if not child.ended.done():
            await child.end(grace_seconds=0)
        child.close()
    if how != "ended":
        raise ToolError(f"{' '.join(argv[:3])} did not finish within {timeout:g} seconds.")
    return ProgramResult(
        code=child.ended.result(),
        out=out.decode("utf-8", "replace").strip(),
        errors=errors.decode("utf-8", "replace").strip(),
    )


NOW_SECONDS = 15.0
# What ssh and container engines read to find their agents, sockets and settings.
_CONNECTION_VARIABLES = (
    "PATH", "HOME", "USER", "LOGNAME", "LC_ALL", "TMPDIR", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG",
    "CONTAINER_HOST", "CONTAINERS_CONF",
)  # fmt: skip
_READ_BYTES = 65_536


class CliMachine(RemoteMachine):
    """A machine that a local program connects to; `argv` are its absolute path and arguments. Keeps
    one bash ready that waits for its line, so that a command does not wait for programs and start
    files. Subclasses open and close what is behind the program."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._asking: _QuestionShell | None = None
        self._spare: CliProcess | None = None

    @property
    def argv(self) -> tuple[str, ...]:
        raise NotImplementedError

    def direct(self) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return a program that runs a bash on the machine, and its environment, for a process that
        outlives this one."""
        env = {name: self._env[name] for name in _CONNECTION_VARIABLES if name in self._env}
        return self.argv, env

    def open_now(self) -> None:
        """Open, blocking; for callers outside the loop."""

    async def start(self, feed: bytes, out: Sink, errors: Sink) -> RemoteProcess:
        run = self._spare
        if run is None or run.ended.done():
            run = self._start_waiting()
        run.begin(feed, out, errors)
        self._spare = self._start_waiting()
        return run

    def _start_waiting(self) -> CliProcess:
        argv = self.argv
        try:
            return CliProcess(argv, self._env)
        except OSError as error:
            raise ToolError(f"{argv[0]} cannot be started: {error.strerror}.") from error

    def ask_now(self, line: str, data: bytes) -> bytes:
        """Ask through one bash that stays open, so that no program starts per question."""
        for attempt in (1, 2):
            if self._asking is None:
                self.open_now()
                self._asking = _QuestionShell(self.argv, self._env)
            try:
                return self._asking.ask(line, data)
            except (OSError, TimeoutError) as error:
                self._asking.close()
                self._asking = None
                if attempt == 2 or isinstance(error, TimeoutError):
                    raise ToolError("The machine is not reachable now. Try again.") from error
        raise AssertionError("unreachable")

    def _close_shells(self) -> None:
        if self._asking:
            self._asking.close()
            self._asking = None
        if self._spare:
            self._spare.close()
            self._spare = None


class CliProcess:
    """A bash that waits for its line; output before that is held back."""

    def __init__(self, argv: tuple[str, ...], env: Mapping[str, str]) -> None:
        self._sinks: tuple[Sink, Sink] | None = None
        self._early: list[tuple[int, bytes]] = []
        out, errors = partial(self._pass_on, 0), partial(self._pass_on, 1)
        self._child = Child(argv[0], argv, env, out, errors=errors, feed=b"")
        self._closing: asyncio.Task[None] | None = None

    @property
    def ended(self) -> asyncio.Future[int]:
        return self._child.ended

    def begin(self, feed: bytes, out: Sink, errors: Sink) -> None:
        self._sinks = (out, errors)
        for number, data in self._early:
            self._sinks[number](data)
        self._child.send_input(feed)

    def close(self) -> None:
        """Kill the local program without waiting."""
        self._child.close()
        if not self._child.ended.done() and self._closing is None:
            self._closing = asyncio.ensure_future(self._child.end(grace_seconds=0))

    def _pass_on(self, number: int, data: bytes) -> None:
        if self._sinks is None:
            self._early.append((number, data))
        else:
            self._sinks[number](data)


class _QuestionShell:
    """A remote bash that answers questions one after the other. Question, data and answer each end
    in NUL."""

    _LOOP = (
        'builtin printf "\\0"; while IFS= read -rd "" __line && IFS= read -rd "" __data; do '
        'eval "$__line"; builtin printf "\\0"; done'
    )

    def __init__(self, argv: tuple[str, ...], env: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            argv,
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
