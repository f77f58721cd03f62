"""A separate program that keeps a command on a pseudo-terminal alive after Hermes has ended.

Copies the terminal to stdout and stdin to the terminal; signal USR1 means end of input. Descriptors
6 and 7 are opened by Hermes, because a confined keeper cannot. Runs without the package, as `python
-I -S terminal_keeper.py FOLDER TERMINAL PROGRAM WORD…`."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import sys
import termios
from pathlib import Path
from types import FrameType

CHUNK = 65_536
LAST_READS = 64
END_OF_INPUT = b"\x04"
CHILD_END, OWN_END, STDIN_FD = 6, 7, 8


def main(folder: Path, name: str, argv: list[str]) -> int:
    terminal = OWN_END
    child = os.fork()
    if child == 0:
        _begin(name, argv)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    news = _pass_signals_on(child, terminal)
    (folder / "ready").write_text("ready\n")
    code = os.waitstatus_to_exitcode(_copy_until_end(child, terminal, news))
    code = code if code >= 0 else 128 - code
    (folder / "exit").write_text(f"{code}\n")
    return code


def _begin(name: str, argv: list[str]) -> None:
    """Start the program in the child. The first terminal that a session leader opens becomes its
    controlling terminal."""
    os.setsid()
    descriptor = os.open(name, os.O_RDWR)
    for target in (0, 1, 2):
        os.dup2(descriptor, target)
    for unneeded in (CHILD_END, OWN_END, STDIN_FD, descriptor):
        os.close(unneeded)
    os.execv(argv[0], argv)


def _pass_signals_on(child: int, terminal: int) -> int:
    """Return a descriptor that is readable after any signal, including the child's end."""

    def forward(number: int, _frame: FrameType | None) -> None:
        os.killpg(child, number)

    def end_input(_number: int, _frame: FrameType | None) -> None:
        os.write(terminal, END_OF_INPUT)

    def wake(_number: int, _frame: FrameType | None) -> None:
        pass

    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, forward)
    signal.signal(signal.SIGUSR1, end_input)
    signal.signal(signal.SIGCHLD, wake)
    return reading


def _copy_until_end(child: int, terminal: int, news: int) -> int:
    """Return the child's wait status. Leftover processes on the terminal may live on; their output
    is not copied."""
    sources = [terminal, 0, news]
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            for _ in range(LAST_READS):
                readable, _, _ = select.select([terminal], [], [], 0)
                if not readable or not _copy_some(terminal):
                    break
            return status
        readable, _, _ = select.select(sources, [], [])
        if 0 in readable:
            os.write(terminal, os.read(0, CHUNK))
        if news in readable:
            os.read(news, CHUNK)
        if terminal in readable and not _copy_some(terminal):
            sources.remove(terminal)


def _copy_some(terminal: int) -> bool:
    try:
        data = os.read(terminal, CHUNK)
    except OSError:
        return False
    os.write(1, data)
    return bool(data)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
