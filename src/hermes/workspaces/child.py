"""One child process in a session of its own, started and awaited at little cost.

`asyncio`'s own subprocess support costs four times the processor time of this."""

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
from typing import Literal

from hermes.workspaces.process_tree import end_tree

READ_BYTES = 65_536
# A pipe holds far less than this: more means that something writes on after the end.
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


def spawn(
    program: str, argv: tuple[str, ...], env: Mapping[str, str], actions: Sequence[FileAction]
) -> int:
    """Start a program as leader of a new session; its number. Raises OSError."""
    return os.posix_spawn(
        program,
        argv,
        env,
        file_actions=actions,
        setsid=True,
        setsigdef=_DEFAULT_SIGNALS,
        setsigmask=(),
    )


def onto(source: int, target: int) -> FileAction:
    return (os.POSIX_SPAWN_DUP2, source, target)


def opened(target: int, path: str, flags: int) -> FileAction:
    return (os.POSIX_SPAWN_OPEN, target, path, flags, 0)


class ExitWatch:
    """Calls back once, on the loop, when a process has ended. A child of ours is reaped, and its
    exit code passed; of another process only the end can be seen, and None is passed."""

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

    def forget(self) -> None:
        """Call nobody any more; a child is still reaped when it ends."""
        self._ended = lambda _code: None

    def close(self) -> None:
        """Leave the process alone altogether: it is none of ours."""
        self.forget()
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
        while code is None and _exists(self._pid):
            time.sleep(0.5)
        with contextlib.suppress(RuntimeError):  # the loop may be gone by then
            self._loop.call_soon_threadsafe(lambda: self._ended(code))


def _reap(pid: int) -> int | None:
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:
        return None
    return exit_code(status)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def exit_code(status: int) -> int:
    """As a shell tells it: death by a signal is 128 and its number."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


class Child:
    """A running program whose output arrives in `sink`. Its input is empty, or a terminal that
    says end-of-file. What it leaves behind may hold the pipe open: the end is the program's."""

    def __init__(
        self,
        program: str,
        argv: tuple[str, ...],
        env: Mapping[str, str],
        sink: Callable[[bytes], None],
        *,
        pty: bool = False,
        complaints: int | None = None,
    ) -> None:
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._source, self._far_end, actions = _terminal() if pty else _pipe(complaints)
        try:
            self.pid = spawn(program, argv, env, actions)
        except BaseException:
            os.close(self._source)
            os.close(self._far_end)
            raise
        if not pty:
            os.close(self._far_end)
            self._far_end = -1
        self.ended: asyncio.Future[int] = self._loop.create_future()
        self._watch = ExitWatch(self.pid, self._on_end)
        self._loop.add_reader(self._source, self._on_output)

    async def wait(
        self, *, timeout: float | None, stop: asyncio.Event | None = None
    ) -> Literal["ended", "timeout", "stopped"]:
        """How the waiting came to its end; the program may still run."""
        waits: set[asyncio.Future[object]] = {self.ended}  # type: ignore[arg-type]
        stopping = asyncio.ensure_future(stop.wait()) if stop else None
        if stopping:
            waits.add(stopping)  # type: ignore[arg-type]
        try:
            await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if stopping:
                stopping.cancel()
        if self.ended.done():
            return "ended"
        return "stopped" if stop and stop.is_set() else "timeout"

    async def end(self, *, grace_seconds: float) -> None:
        """Make it end, with everything that it started; without grace, at once. It is reaped
        before this returns, also when the caller is being cancelled."""
        try:
            await end_tree(self.pid, grace_seconds=grace_seconds)
        finally:
            await asyncio.wait({self.ended}, timeout=REAP_SECONDS)

    def close(self) -> None:
        """Take what is left in the pipe and let go of it."""
        if self._source < 0:
            return
        self._loop.remove_reader(self._source)
        for _ in range(LAST_READS):
            if not self._read():
                break
        os.close(self._source)
        self._source = -1
        if self._far_end >= 0:
            os.close(self._far_end)
            self._far_end = -1

    def _on_output(self) -> None:
        if self._read() is False:
            self._loop.remove_reader(self._source)

    def _read(self) -> bool | None:
        """True when there was something, False at the end, None when there is nothing now."""
        try:
            data = os.read(self._source, READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:  # a terminal whose program has ended
            return False
        if data:
            self._sink(data)
        return bool(data)

    def _on_end(self, code: int | None) -> None:
        if not self.ended.done():
            self.ended.set_result(-1 if code is None else code)


def _pipe(complaints: int | None) -> tuple[int, int, list[FileAction]]:
    source, far_end = os.pipe()
    os.set_blocking(source, False)
    actions: list[FileAction] = [
        opened(0, os.devnull, os.O_RDONLY),
        onto(far_end, 1),
        onto(far_end if complaints is None else complaints, 2),
    ]
    return source, far_end, actions


def _terminal() -> tuple[int, int, list[FileAction]]:
    """A pseudo-terminal. The new session opens it first and so gets it as its controlling one."""
    source, far_end = os.openpty()
    fcntl.ioctl(far_end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    os.set_blocking(source, False)
    os.write(source, b"\x04")  # end of input for whoever reads
    return source, far_end, [opened(0, os.ttyname(far_end), os.O_RDWR), onto(0, 1), onto(0, 2)]
