"""How much is written to the terminal while an answer streams: no repaint of the screen per token.

The program runs on a pseudo-terminal and every byte that it writes is counted."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes.testing.faults import paced
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, says
from tests.surfaces.cli.chat.pane import HERMES
from tests.timing import Late, tries

# How long an answer takes; a slow one has fewer words.
SECONDS = 3.0
MOST_TOKENS = 500
SETTINGS = "auxiliary: {title_generation: {provider: none}}\n"


class Line:
    """A terminal of which only the bytes are known."""

    def __init__(self, master: int) -> None:
        self._master = master
        self.written = b""

    def send(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait(self, pattern: str, *, after: int = 0, seconds: float = 60) -> None:
        late = time.monotonic() + seconds
        while not re.search(pattern.encode(), self.written[after:]):
            assert time.monotonic() < late, self.written[after:][-2000:].decode("utf-8", "replace")
            if select.select([self._master], [], [], 0.1)[0]:
                self.written += os.read(self._master, 65536)


@contextmanager
def line(tmp_path: Path, *steps: Step) -> Iterator[Line]:
    home = tmp_path / "home"
    tmp_path.mkdir(exist_ok=True)
    home.mkdir(mode=0o700)
    (home / "config.yaml").write_text(SETTINGS)
    (home / "config.yaml").chmod(0o600)
    with ScriptedServer.in_thread(steps) as server:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "HERMES_HOME": str(home),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "OPENAI_BASE_URL": f"{server.url}/v1",
            "OPENAI_API_KEY": "test-key",
            "HERMES_MODEL": "test",
        }
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        running = subprocess.Popen(
            [str(HERMES)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            cwd=tmp_path,
            start_new_session=True,
        )
        os.close(slave)
        opened = Line(master)
        try:
            opened.wait("test │")
            yield opened
        finally:
            running.kill()
            running.wait()
            os.close(master)


@pytest.mark.parametrize("between_seconds", [0.004, 0.015, 0.04])
def test_an_answer_costs_at_most_four_times_its_own_bytes(
    tmp_path: Path, between_seconds: float
) -> None:
    # As long as English is on average, and each one to be told from the others.
    tokens = min(MOST_TOKENS, int(SECONDS / between_seconds))
    words = [f"w{n:03}" for n in range(tokens)]
    text = " ".join(words)
    step = paced(says(text), chunk=5, between_seconds=between_seconds)
    for one in tries():
        with one, line(tmp_path / str(one.number), step) as opened:
            opened.send("go\r")
            # What moves while nothing is said yet is not counted.
            opened.wait(words[0])
            begun = len(opened.written)
            opened.wait(words[-1], after=begun, seconds=120)
            times = (len(opened.written) - begun) / len(text.encode())
            # A busy machine takes longer to say it, and the clock on the screen goes on.
            if times > 4:
                raise Late(f"{times:.1f} times their own bytes")
