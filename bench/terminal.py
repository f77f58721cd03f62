"""The chat in a terminal: the time until its prompt, CPU while an answer streams in, and CPU of an
idle chat and an idle server. A terminal that only reads the bytes is at the other end."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.api import hermes
from bench.measure import HERMES, report, rounded
from bench.serving import served
from hermes.codec.values import replace
from hermes.testing.steps import Pace, says

STARTS = 7
WORDS, WORDS_PER_SECOND = 1_000, 100
SETTLE_SECONDS, IDLE_SECONDS = 5.0, 30.0
PROMPT, LAST_WORD = "❯".encode(), b"theend"
SETTINGS = "auxiliary: {title_generation: {provider: none}}\n"


class Chat:
    """A chat in a terminal of its own; `output` is what it has written."""

    def __init__(self, home: Path) -> None:
        self.begun = time.perf_counter()
        self.output = bytearray()
        env = {"HERMES_HOME": str(home), "HOME": str(home.parent), "TERM": "xterm-256color"}
        env |= {"PATH": os.defpath, "LANG": "C.UTF-8"}
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(home.parent)
            os.execve(HERMES, [HERMES], env)
        size = struct.pack("HHHH", 40, 120, 0, 0)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)

    def wait_for(self, text: bytes, seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while text not in self.output:
            if time.monotonic() > end:
                raise SystemExit(f"the chat did not show {text!r}: {bytes(self.output[-500:])!r}")
            self.read(0.1)

    def read(self, seconds: float) -> None:
        """Take what comes within the time; a terminal answers nothing."""
        if select.select([self._terminal], [], [], seconds)[0]:
            self.output += os.read(self._terminal, 65_536)

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def close(self) -> None:
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self._terminal)


@contextmanager
def chat(home: Path) -> Iterator[Chat]:
    opened = Chat(home)
    try:
        yield opened
    finally:
        opened.close()


def cpu_of(pid: int) -> float:
    """CPU seconds of all threads, more exact than the ticks of `stat`."""
    spent = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        spent += int((thread / "schedstat").read_text().split()[0])
    return spent / 1e9


def measure_start(home: Path) -> None:
    seconds, cpu = [], []
    for _ in range(STARTS):
        with chat(home) as opened:
            opened.wait_for(PROMPT)
            seconds.append(time.perf_counter() - opened.begun)
            cpu.append(cpu_of(opened.pid))
    report(
        "prompt_ready",
        wall_seconds=rounded(min(seconds), 3),
        cpu_seconds=rounded(min(cpu), 3),
        goal="wall <= 0.12",
    )


def measure_stream(home: Path) -> None:
    with chat(home) as opened:
        opened.wait_for(PROMPT)
        opened.read(1.0)
        before, begun = cpu_of(opened.pid), time.perf_counter()
        opened.type("tell me\r")
        opened.wait_for(LAST_WORD)
        spent, seconds = cpu_of(opened.pid) - before, time.perf_counter() - begun
    report(
        "chat_stream",
        words_per_second=rounded(WORDS / seconds, 1),
        cpu_per_cent_of_a_core=rounded(100 * spent / seconds, 1),
        goal=f"<= 8 % of a core at {WORDS_PER_SECOND} words/s",
    )


def measure_idle(home: Path, folder: Path, url: str) -> None:
    with chat(home) as opened, hermes(folder, url) as (server, _):
        opened.wait_for(PROMPT)
        settle = time.monotonic() + SETTLE_SECONDS
        while (rest := settle - time.monotonic()) > 0:
            opened.read(rest)
        pids = {"chat": opened.pid, "serve": server.pid}
        before = {name: cpu_of(pid) for name, pid in pids.items()}
        end = time.monotonic() + IDLE_SECONDS
        while (rest := end - time.monotonic()) > 0:
            opened.read(rest)
        for name, pid in pids.items():
            spent = (cpu_of(pid) - before[name]) * 60 / IDLE_SECONDS
            report(f"idle_{name}", cpu_ms_per_minute=rounded(1000 * spent, 1), goal="<= 30 ms")


def main() -> None:
    text = " ".join(["word"] * (WORDS - 1)) + " " + LAST_WORD.decode()
    step = replace(says(text), pace=Pace(chunk=5, between_seconds=1 / WORDS_PER_SECOND))
    with tempfile.TemporaryDirectory() as name, served([step], loop=True) as url:
        home = Path(name) / "chat" / "home"
        home.mkdir(parents=True)
        model = f'model: {{default: scripted, provider: custom, base_url: "{url}/v1"}}\n'
        (home / "config.yaml").write_text(model + SETTINGS)
        measure_start(home)
        measure_stream(home)
        measure_idle(home, Path(name), url)


if __name__ == "__main__":
    main()
