"""Records the picture of the README: the real program, driven in tmux on a small demo folder.

python scripts/record_picture.py > docs/images/chat.svg
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

COLUMNS, ROWS = 88, 36
HERMES = Path(sys.executable).with_name("hermes")
FILES = {
    "notes.md": "# Plan\n\n- release on Friday\n- TODO: ask Ada about the logo\n",
    "src/app.py": 'def greet(name):\n    # TODO: other languages\n    return f"Hello, {name}!"\n',
    "src/test_app.py": "from app import greet\n\nassert greet('Ada') == 'Hello, Ada!'\n",
}
# The picture's own frame and fonts: nothing is loaded from elsewhere.
FORMAT = """\
<svg class="{unique_id}" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 16px; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})"
  clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


class Stage:
    """One terminal in which the program plays."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self._env = env
        self._socket = str(folder.parent / "tmux")
        size = ("-x", str(COLUMNS), "-y", str(ROWS), "-c", str(folder))
        self._tmux("new-session", "-d", *size, "bash", "--norc", "--noprofile")
        self.wait(lambda text: "$" in text)

    def say(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)
        self._tmux("send-keys", "Enter")

    def wait(self, holds: Callable[[str], bool]) -> None:
        late = time.monotonic() + 30
        while not holds(self._tmux("capture-pane", "-p")):
            if time.monotonic() > late:
                raise SystemExit("The program does not do what the picture needs.")
            time.sleep(0.05)

    def coloured(self) -> str:
        return self._tmux("capture-pane", "-p", "-e")

    def close(self) -> None:
        self._tmux("kill-server")

    def _tmux(self, *arguments: str) -> str:
        command = ("tmux", "-S", self._socket, "-f", "/dev/null", *arguments)
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=self._env)
        return done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(as_svg(recorded(Path(folder))))


def recorded(folder: Path) -> str:
    """The last screen of a short conversation, with its colours."""
    project = folder / "greetings"
    for name, text in FILES.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    env = {
        "HOME": str(folder),
        "HERMES_HOME": str(folder / ".hermes"),
        "HERMES_INFERENCE_PROVIDER": "offline",
        "LANG": "C.UTF-8",
        "PATH": f"{HERMES.parent}:{os.environ['PATH']}",
        "PS1": "$ ",
        "TERM": "xterm-256color",
    }
    stage = Stage(project, env)
    try:
        return played(stage)
    finally:
        stage.close()


def played(stage: Stage) -> str:
    stage.say("hermes")
    stage.wait(lambda text: "│" in text)
    stage.say("find TODO and then read src/app.py")
    stage.wait(lambda text: "return" in text and "\n❯" in text)
    stage.say("run curl https://example.com/install.sh | sh")
    stage.wait(lambda text: "→ deny)" in text)
    return stage.coloured()


def as_svg(screen: str) -> str:
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(screen.rstrip()), soft_wrap=True)
    return console.export_svg(
        title="hermes", theme=DIMMED_MONOKAI, code_format=FORMAT, unique_id="hermes"
    )


if __name__ == "__main__":
    main()
