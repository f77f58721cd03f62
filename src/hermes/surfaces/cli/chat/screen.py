"""The terminal of a chat: its protocol, its colours, and the screen without cursor control."""

from __future__ import annotations

import asyncio
import os
import shutil
import termios
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TextIO

from hermes.commands.language import ENGLISH, Translator
from hermes.surfaces.cli.chat.skin import DEFAULT, Skin, colour_code

if TYPE_CHECKING:
    from hermes.surfaces.cli.chat.chat_state import ChatState

Role = Literal[
    "plain",
    "dim",
    "bold",
    "heading",
    "accent",
    "prompt",
    "ok",
    "warn",
    "error",
    "added",
    "removed",
    "chosen",
]

# The code of each role, and its colour in a skin.
ROLES: dict[Role, tuple[str, str]] = {
    "dim": ("2", "banner_dim"),
    "bold": ("1", "banner_title"),
    "heading": ("1;36", "ui_accent"),
    "accent": ("36", "ui_accent"),
    "prompt": ("36", "prompt"),
    "ok": ("32", "ui_ok"),
    "warn": ("33", "ui_warn"),
    "error": ("31", "ui_error"),
    "added": ("32", "ui_ok"),
    "removed": ("31", "ui_error"),
    "chosen": ("7", ""),
}


class Paint:
    """Colours text: `paint(text, role)` does so line by line, if `colours` is set. `skin` is the
    current skin, `say` the current language."""

    def __init__(self, *, colours: bool) -> None:
        self.colours = colours
        self.say: Translator = ENGLISH
        self.apply_skin(DEFAULT)

    def apply_skin(self, skin: Skin) -> None:
        self.skin, self._codes = skin, dict[Role, str]()
        for role, (code, key) in ROLES.items():
            if key in skin.colors:
                own = colour_code(skin.colors[key])
                # Titles stay bold.
                is_title = role in ("bold", "heading")
                code = f"1;{own}".rstrip(";") if is_title else own
            self._codes[role] = code

    def code(self, role: Role) -> str:
        """The escape code of a role."""
        return self._codes.get(role, "")

    def __call__(self, text: str, role: Role) -> str:
        code = self._codes.get(role)
        if not self.colours or not code or not text:
            return text
        # A colour across a line break would also fill the margin of the next line.
        lines = text.split("\n")
        return "\n".join(f"\x1b[{code}m{line}\x1b[0m" if line else line for line in lines)


class ChatScreen(Protocol):
    """One terminal. Finished output is printed once and never drawn again. The defaults fit a
    terminal without cursor control."""

    paint: Paint
    draft: str
    """The unsent input."""

    @property
    def animated(self) -> bool:
        """Whether the live rows may be animated."""

    @property
    def width(self) -> int: ...

    def show(self, text: str) -> None:
        """Print above the input; colours are part of the text."""

    def refresh(self) -> None:
        """Redraw the live rows."""
        return

    def ready(self) -> None:
        """Called when the user can type the next message."""

    def was_echoed(self, text: str) -> bool:
        """Whether the terminal has already echoed this text."""
        return False

    def fold(self, text: str) -> str:
        """A sent text as it was typed: with placeholders instead of long pastes."""
        return text

    def attach(self, path: str) -> None:
        """Attach an image to the next message."""

    def pictures(self, text: str) -> tuple[str, ...]:
        """The images attached to a sent text."""

    def copy(self, text: str) -> bool:
        """Copy to the clipboard; False if the terminal has none."""
        return False

    def compose(self, draft: str) -> bool:
        """Open the draft in an editor; False if that is not possible."""
        return False

    def clear(self) -> None:
        """Clear the screen."""
        return

    def ring(self) -> None: ...

    def question_opened(self, choices: Sequence[str], *, secret: bool = False) -> None:
        """A question has opened: the draft is set aside until `question_closed`. Input for a
        `secret` one is hidden."""

    def question_closed(self) -> None: ...

    async def run(self) -> None:
        """Run until `close`, or until the terminal is gone."""

    def close(self) -> None: ...


class PlainScreen(ChatScreen):
    """A screen without live rows: questions are printed when they open. The terminal itself edits
    the input line, so the program never sees a draft."""

    animated = False

    def __init__(self, state: ChatState, stdin: TextIO, stdout: TextIO) -> None:
        self.paint = Paint(colours=False)
        self._state = state
        self._stdin = stdin
        self._stdout = stdout
        self._typed = b""
        self._seen: list[str] = []
        self._ended = asyncio.Event()
        self._prompted = False
        self._echoes = True
        self._attached: list[str] = []

    @property
    def width(self) -> int:
        return shutil.get_terminal_size().columns

    @property
    def draft(self) -> str:
        return ""

    @draft.setter
    def draft(self, text: str) -> None:
        if text:
            self.show(f"Edit and send again:\n{text}")

    def was_echoed(self, text: str) -> bool:
        if text not in self._seen:
            return False
        self._seen.remove(text)
        return True

    def show(self, text: str) -> None:
        self._write("\n" * self._prompted + text + "\n")
        self._prompted = False

    def ready(self) -> None:
        if not self._prompted:
            self._write(f"{self._state.symbol()} ")
            self._prompted = True

    def attach(self, path: str) -> None:
        self._attached.append(path)
        self.show(f"{path} is attached to your next message.")

    def pictures(self, text: str) -> tuple[str, ...]:
        found, self._attached = tuple(self._attached), []
        return found

    def ring(self) -> None:
        self._write("\a")

    def question_opened(self, choices: Sequence[str], *, secret: bool = False) -> None:
        self.show("\n".join(choices))
        if secret:
            self._echo(False)
        self.ready()

    def question_closed(self) -> None:
        self._echo(True)

    def _echo(self, wanted: bool) -> None:
        """Switch the terminal's echo."""
        if wanted == self._echoes or not self._stdin.isatty():
            return
        self._echoes = wanted
        state = termios.tcgetattr(self._stdin)
        state[3] = state[3] | termios.ECHO if wanted else state[3] & ~termios.ECHO
        termios.tcsetattr(self._stdin, termios.TCSADRAIN, state)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(self._stdin.fileno(), self._read)
        try:
            await self._ended.wait()
        finally:
            loop.remove_reader(self._stdin.fileno())
            self._echo(True)

    def close(self) -> None:
        self._ended.set()

    def _read(self) -> None:
        data = os.read(self._stdin.fileno(), 65536)
        if not data:
            self._state.leave()
            return
        *lines, self._typed = (self._typed + data).split(b"\n")
        for line in lines:
            text = line.decode("utf-8", "replace")
            self._prompted = False
            if self._state.submit(text):
                self._seen.append(text)

    def _write(self, text: str) -> None:
        try:
            self._stdout.write(text)
            self._stdout.flush()
        except OSError:
            self._ended.set()
