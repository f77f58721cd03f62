"""Runs one child process in its own session.

`asyncio`'s subprocess support takes four times the processor time."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import struct
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

from hermes.core.concurrency import wait_for_first
from hermes.workspaces.process_tree import end_tree

READ_BYTES = 65_536
# A pipe holds far less than this, so more means that a leftover process is still writing.
LAST_READS = 32
REAP_SECONDS = 1.0

_DEFAULT_SIGNALS = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGPIPE,
    signal.SIGUSR1,
    signal.SIGXFSZ,
)

FileAction = tuple[int, int, int] | tuple[int, int, str, int, int]
Sink = Callable[[bytes], None]
# The descriptor from which a program can read the password once.
PASSWORD_FD = 9
# No program gets a descriptor with this number or a higher one.
_FIRST_FREE_FD = 16


class Spawn(Protocol):
    """Starts a program as leader of a new session and returns its pid. Raises OSError."""

    def __call__(
        self,
        program: str,
        argv: tuple[str, ...],
        env: Mapping[str, str],
        actions: Sequence[FileAction],
        /,
    ) -> int: ...


def spawn(
    program: str, argv: tuple[str, ...], env: Mapping[str, str], actions: Sequence[FileAction]
) -> int:
    passed = {action[2] if action[0] == os.POSIX_SPAWN_DUP2 else action[1] for action in actions}
    closed = []
    # Descriptors that the parent of Hermes left open. A program must not get them: it could write
    # to what a sandbox hides from it.
    for descriptor in map(int, os.listdir("/dev/fd")):  # noqa: PTH208
        with contextlib.suppress(OSError):
            if descriptor > 2 and descriptor not in passed and os.get_inheritable(descriptor):
                closed.append((os.POSIX_SPAWN_CLOSE, descriptor))
    return os.posix_spawn(
        program,
        argv,
        env,
        file_actions=[*actions, *closed],
        setsid=True,
        setsigdef=_DEFAULT_SIGNALS,
        setsigmask=(),
    )


def dup2_action(source: int, target: int) -> FileAction:
    return (os.POSIX_SPAWN_DUP2, source, target)


def move_up(descriptor: int) -> int:
    """Return the same file above all numbers that actions assign, so that no action replaces it
    before it was passed on. The descriptor is closed."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE_FD)
    os.close(descriptor)
    return moved


def open_action(target: int, path: str, flags: int) -> FileAction:
    return (os.POSIX_SPAWN_OPEN, target, path, flags, 0)


class ExitWatch:
    """Calls back once, on the loop, when a process has ended. Our own children are reaped and
    report their exit code; for other processes the code is None."""

    def __init__(self, pid: int, ended: Callable[[int | None], None]) -> None:
        self._pid = pid
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._pidfd = -1
        if sys.platform == "linux":
            self._pidfd = os.pidfd_open(pid)
            self._loop.add_reader(self._pidfd, self._on_end)
        else:
            threading.Thread(target=self._wait_in_thread, daemon=True).start()

    def cancel(self) -> None:
        """Cancel the callback; a child is still reaped when it ends."""
        self._ended = lambda _code: None

    def close(self) -> None:
        """Stop watching, without reaping."""
        self.cancel()
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1

    def _on_end(self) -> None:
        ended = self._ended
        self.close()
        ended(_reap(self._pid))

    def _wait_in_thread(self) -> None:
        code = _reap(self._pid)
        with contextlib.suppress(ProcessLookupError):
            while code is None:
                with contextlib.suppress(PermissionError):
                    os.kill(self._pid, 0)
                time.sleep(0.5)
        with contextlib.suppress(RuntimeError):  # the loop may be closed by then
            self._loop.call_soon_threadsafe(lambda: self._ended(code))


def _reap(pid: int) -> int | None:
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:
        return None
    return exit_code(status)


def exit_code(status: int) -> int:
    """Return the exit code as a shell reports it: 128 plus the number of a signal."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


class Child:
    """A running program. It ends when the program itself ends, even if leftover processes hold a
    pipe open.

    sink      receives the output, and the error output unless `errors` takes that
    feed      the input; else the descriptor `source`, nothing, or a terminal at end-of-file
    password  can be read once from descriptor PASSWORD_FD
    """

    def __init__(
        self,
        program: str,
        argv: tuple[str, ...],
        env: Mapping[str, str],
        sink: Sink,
        *,
        pty: bool = False,
        errors: Sink | None = None,
        feed: bytes | None = None,
        password: bytes = b"",
        source: int = -1,
        spawn: Spawn = spawn,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._held: list[int] = []
        self._sources: list[_OutputPipe] = []
        self._feed: _InputPipe | None = None
        passed: list[int] = []
        try:
            actions = (
                self._terminal(sink) if pty else self._pipes(sink, errors, feed, source, passed)
            )
            if password:
                actions += self._password_actions(password, passed, pty=pty)
            self.pid = spawn(program, argv, env, actions)
        except BaseException:
            self._close_pipes()
            raise
        finally:
            for descriptor in passed:
                os.close(descriptor)
        self.ended: asyncio.Future[int] = self._loop.create_future()
        self._watch = ExitWatch(self.pid, self._on_end)
        for each in self._sources:
            each.begin()
        if feed:
            self.send_input(feed)

    def send_input(self, data: bytes) -> None:
        """Send all of the input, for a program that was started with an empty `feed`."""
        if self._feed:
            self._feed.begin(data)

    async def wait(
        self, *, timeout: float | None, stop: asyncio.Event | None = None
    ) -> Literal["ended", "timeout", "stopped"]:
        """Wait and return why the waiting ended; the program may still run."""
        return await wait_for_first(self.ended, timeout=timeout, stop=stop)

    async def end(self, *, grace_seconds: float) -> None:
        """End the program and everything that it started, at once if there is no grace period. It
        is reaped before this returns, even when the caller is cancelled."""
        try:
            await end_tree(self.pid, grace_seconds=grace_seconds)
        finally:
            await asyncio.wait({self.ended}, timeout=REAP_SECONDS)

    def close(self) -> None:
        """Read what is left in the pipes and close them."""
        for source in self._sources:
            source.drain()
        self._close_pipes()

    def _pipes(
        self, sink: Sink, errors: Sink | None, feed: bytes | None, source: int, passed: list[int]
    ) -> list[FileAction]:
        actions = [
            dup2_action(source, 0) if source >= 0 else open_action(0, os.devnull, os.O_RDONLY)
        ]
        if feed is not None:
            child_end, own_end = os.pipe()
            passed.append(child_end)
            self._feed = _InputPipe(own_end, self._loop)
            actions = [dup2_action(child_end, 0)]
        output = self._source(sink, passed)
        complaints = output if errors is None else self._source(errors, passed)
        return [*actions, dup2_action(output, 1), dup2_action(complaints, 2)]

    def _source(self, sink: Sink, passed: list[int]) -> int:
        source, child_end = os.pipe()
        passed.append(child_end)
        self._sources.append(_OutputPipe(source, sink, self._loop))
        return child_end

    def _terminal(self, sink: Sink) -> list[FileAction]:
        """Return the actions for a pseudo-terminal. The new session opens it first, so it becomes
        the controlling terminal."""
        child_end = self._new_terminal()
        self._sources.append(_OutputPipe(os.dup(self._held[0]), sink, self._loop))
        return [
            open_action(0, os.ttyname(child_end), os.O_RDWR),
            dup2_action(0, 1),
            dup2_action(0, 2),
        ]

    def _password_actions(self, data: bytes, passed: list[int], *, pty: bool) -> list[FileAction]:
        """Write before the program starts: the password fits into a pipe. sudo remembers it per
        terminal, so a controlling terminal is needed."""
        reading, writing = os.pipe()
        reading = move_up(reading)
        passed.append(reading)
        os.write(writing, data)
        os.close(writing)
        if pty:
            return [dup2_action(reading, PASSWORD_FD)]
        controlling = open_action(PASSWORD_FD, os.ttyname(self._new_terminal()), os.O_RDWR)
        return [controlling, dup2_action(reading, PASSWORD_FD)]

    def _new_terminal(self) -> int:
        own_end, child_end = os.openpty()
        self._held += (own_end, child_end)
        fcntl.ioctl(child_end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        os.write(own_end, b"\x04")  # end of input for readers
        return child_end

    def _close_pipes(self) -> None:
        for part in (*self._sources, self._feed):
            if part:
                part.close()
        for descriptor in self._held:
            os.close(descriptor)
        self._held.clear()

    def _on_end(self, code: int | None) -> None:
        if not self.ended.done():
            self.ended.set_result(-1 if code is None else code)


class _OutputPipe:
    """Reads one output stream of a program."""

    def __init__(self, descriptor: int, sink: Sink, loop: asyncio.AbstractEventLoop) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._sink = sink
        self._loop = loop

    def begin(self) -> None:
        def read() -> None:
            if self._read() is False:
                self._loop.remove_reader(self._descriptor)

        self._loop.add_reader(self._descriptor, read)

    def drain(self) -> None:
        for _ in range(LAST_READS):
            if self._descriptor < 0 or not self._read():
                return

    def close(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _read(self) -> bool | None:
        """Return True after data, False at the end, None when there is nothing now."""
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:  # a terminal whose program has ended
            return False
        if data:
            self._sink(data)
        return bool(data)


class _InputPipe:
    """Writes the input of a program."""

    def __init__(self, descriptor: int, loop: asyncio.AbstractEventLoop) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._rest = memoryview(b"")
        self._loop = loop

    def begin(self, data: bytes) -> None:
        self._rest = memoryview(data)
        self._loop.add_writer(self._descriptor, self._on_writable)

    def close(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_writer(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _on_writable(self) -> None:
        try:
            self._rest = self._rest[os.write(self._descriptor, self._rest) :]
        except BlockingIOError:
            return
        except OSError:  # the program has stopped reading
            self._rest = self._rest[:0]
        if not self._rest:
            self.close()
