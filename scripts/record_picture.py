"""Records the picture of the README: the real program in tmux, with a scripted model.

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

from hermes.testing.server import ScriptedServer
from hermes.testing.steps import call, calls, calls_many

COLUMNS, ROWS = 88, 36
HERMES = Path(sys.executable).with_name("hermes")
FILES = {
    "app.py": 'import os\n\n\ndef greet(name):\n    return f"Hello, {name}!"\n',
    "test_app.py": "from app import greet\n\nassert greet('Ada') == 'Hello, Ada!'\n",
}
SETTINGS = "auxiliary: {title_generation: {provider: none}}\ndisplay: {compact: true}\n"
ANSWER = """\
The test passes. Two ways to publish:

| Way | Command | Asks first |
|---|---|---|
| package | `twine upload` | yes |
| git | `git push` | **yes** |
"""
SCRIPT = (
    calls("read_file", path="app.py"),
    calls(
        "patch",
        path="app.py",
        old_string='    return f"Hello, {name}!"',
        new_string='    word = os.environ.get("GREETING", "Hello")\n    return f"{word}, {name}!"',
    ),
    calls("terminal", command="python3 test_app.py"),
    calls_many(call("terminal", {"command": "git push origin main"}), text=ANSWER),
)
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
    with tempfile.TemporaryDirectory() as folder, ScriptedServer.in_thread(SCRIPT) as server:
        sys.stdout.write(as_svg(record(Path(folder), server)))


def record(folder: Path, server: ScriptedServer) -> str:
    """The last screen of a short conversation, with its colours."""
    project = folder / "greetings"
    for name, text in FILES.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    home = folder / ".hermes"
    home.mkdir(mode=0o700)
    (home / "config.yaml").write_text(SETTINGS)
    (home / "config.yaml").chmod(0o600)
    env = {
        "HOME": str(folder),
        "HERMES_HOME": str(home),
        "HERMES_MODEL": "demo",
        "OPENAI_API_KEY": "demo",
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "LANG": "C.UTF-8",
        "PATH": f"{HERMES.parent}:{os.environ['PATH']}",
        "PS1": "$ ",
        "TERM": "xterm-256color",
    }
    stage = Stage(project, env)
    try:
        stage.say("hermes")
        stage.wait(lambda text: "│" in text)
        stage.say("make the greeting configurable and publish it")
        stage.wait(lambda text: "→ deny)" in text)
        return stage.coloured()
    finally:
        stage.close()


def as_svg(screen: str) -> str:
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(screen.rstrip()), soft_wrap=True)
    return console.export_svg(
        title="hermes", theme=DIMMED_MONOKAI, code_format=FORMAT, unique_id="hermes"
    )


if __name__ == "__main__":
    main()
