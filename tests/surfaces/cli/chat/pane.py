"""A real terminal for tests: the program runs in tmux, keys go in, the screen comes out."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

TMUX = shutil.which("tmux")
HERMES = Path(sys.executable).with_name("hermes")
PATIENCE_SECONDS = 120
LOOK_SECONDS = 0.03

# Whose values would change what the program does.
_UNWANTED = re.compile(r"HERMES_|.*_API_KEY$|.*_BASE_URL$|NO_COLOR$|TMUX|PYTHONDONTWRITEBYTECODE$")


def steady(screen: str) -> str:
    """A screen without what differs from run to run, and without empty lines at its end."""
    text = re.sub(r"\b\d{8}_\d{6}_[0-9a-f]{6}\b", "ID", screen)
    text = re.sub(r"\b\d+(\.\d)?s\b", "TIME", text)
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip()


class Pane:
    """One terminal with a shell in it. Screens are compared as text, polled until they are as
    wanted: nothing here waits for a fixed time."""

    def __init__(
        self, folder: Path, env: Mapping[str, str], *, columns: int = 100, rows: int = 30
    ) -> None:
        # Not below the folder: the path of a socket must be short.
        self._place = Path(tempfile.mkdtemp(prefix="hermes-tmux-"))
        self._settings = self._place / "tmux.conf"
        self._settings.write_text("set-option -g history-limit 20000\n")
        kept = {name: value for name, value in os.environ.items() if not _UNWANTED.match(name)}
        self._env = {**kept, "PS1": "$ ", **env}
        size = ("-x", str(columns), "-y", str(rows))
        shell = ("bash", "--norc", "--noprofile")
        self._tmux("new-session", "-d", *size, "-c", str(folder), *shell)
        self.wait_for("$")

    def close(self) -> None:
        self._tmux("kill-server", check=False)
        shutil.rmtree(self._place, ignore_errors=True)

    def run(self, command: str) -> None:
        """Type a command into the shell."""
        self._tmux("send-keys", "-l", command)
        self.keys("Enter")

    def hermes(self, arguments: str = "", *, ready: bool = True) -> None:
        """Start the program, and wait until it has a session."""
        self.run(f"{HERMES} {arguments}")
        if ready:
            self.wait(lambda text: "│" in text.rpartition("❯")[0].rpartition("\n⚕")[2])

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def say(self, text: str) -> None:
        self.type(text)
        self.keys("Enter")

    def keys(self, *names: str) -> None:
        self._tmux("send-keys", *names)

    def paste(self, text: str) -> None:
        self._tmux("load-buffer", "-", given=text)
        self._tmux("paste-buffer", "-p")

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self) -> str:
        """What is visible now."""
        return self._tmux("capture-pane", "-p")

    def everything(self) -> str:
        """The scroll-back and what is visible, long lines joined again."""
        return self._tmux("capture-pane", "-p", "-J", "-S", "-")

    def forget(self) -> None:
        """Without the scroll-back."""
        self._tmux("clear-history")

    def coloured(self) -> str:
        """What is visible, with its colours as escape sequences."""
        return self._tmux("capture-pane", "-p", "-e")

    def wait(self, holds: Callable[[str], bool], *, seconds: float = PATIENCE_SECONDS) -> str:
        """The screen as soon as it is as wanted."""
        late = time.monotonic() + seconds
        while True:
            text = self.screen()
            if holds(text):
                return text
            if time.monotonic() > late:
                raise AssertionError(f"The screen did not become as wanted:\n{text}")
            time.sleep(LOOK_SECONDS)

    def wait_for(self, *words: str, seconds: float = PATIENCE_SECONDS) -> str:
        return self.wait(lambda text: all(word in text for word in words), seconds=seconds)

    def wait_idle(self) -> str:
        """Nothing runs, and the input waits."""
        return self.wait(lambda text: text.rstrip().rpartition("\n")[2].startswith("❯"))

    def pid_of(self, words: str) -> int:
        """The process that the shell runs in the foreground."""
        shell = self._tmux("list-panes", "-F", "#{pane_pid}").strip()
        found = subprocess.run(["pgrep", "-P", shell, "-f", words], capture_output=True, text=True)
        return int(found.stdout.split()[0])

    def _tmux(self, *arguments: str, check: bool = True, given: str = "") -> str:
        place = ("-S", str(self._place / "socket"), "-f", str(self._settings))
        return subprocess.run(
            [str(TMUX), *place, *arguments],
            input=given,
            check=check,
            capture_output=True,
            text=True,
            env=self._env,
        ).stdout
