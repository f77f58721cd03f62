"""The terminal of a chat: its protocols, its colours, and the screen without cursor control."""

from __future__ import annotations

import asyncio
import os
import shutil
import termios
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TextIO

from hermes.commands.language import ENGLISH, Translator
from hermes.surfaces.cli.skins.skin import DEFAULT, Skin, colour_code

if TYPE_CHECKING:
    from hermes.commands.registry import Suggestion

Role = Literal[
    "plain", "dim", "bold", "accent", "prompt", "ok", "warn", "error", "added", "removed", "chosen"
]

_CODES: dict[Role, str] = {
    "dim": "2",
    "bold": "1",
    "accent": "36",
    "prompt": "36",
    "ok": "32",
    "warn": "33",
    "error": "31",
    "added": "32",
    "removed": "31",
    "chosen": "7",
}


# The skin colour of each role.
_KEYS: dict[Role, str] = {
    "dim": "banner_dim",
    "bold": "banner_title",
    "accent": "ui_accent",
    "prompt": "prompt",
    "ok": "ui_ok",
    "warn": "ui_warn",
    "error": "ui_error",
    "added": "ui_ok",
    "removed": "ui_error",
}


class Paint:
    """`paint(text, role)` colours the text line by line, if `colours` is set. `skin` is the current
    skin, `say` the current language."""

    def __init__(self, *, colours: bool) -> None:
        self.colours = colours
        self.skin = DEFAULT
        self.say: Translator = ENGLISH
        self._codes = _CODES

    def apply_skin(self, skin: Skin) -> None:
        own = {
            role: _role_code(role, skin.colors[key])
            for role, key in _KEYS.items()
            if key in skin.colors
        }
        self.skin, self._codes = skin, _CODES | own

    def __call__(self, text: str, role: Role) -> str:
        code = self._codes.get(role)
        if not self.colours or not code or not text:
            return text
        # A colour across a line break would also fill the margin of the next line.
        lines = text.split("\n")
        return "\n".join(f"\x1b[{code}m{line}\x1b[0m" if line else line for line in lines)


def _role_code(role: Role, colour: str) -> str:
    """Titles stay bold."""
    code = colour_code(colour)
    return f"1;{code}" if role == "bold" and code else code


class ScreenDelegate(Protocol):
    """What a screen shows around its input, and where it sends the user's actions."""

    def rows(self, width: int, height: int) -> list[str]:
        """The live rows above the input, each within the width."""
        ...

    def symbol(self) -> str: ...

    def asking(self) -> bool:
        """Whether a question is open."""
        ...

    def hiding(self) -> bool:
        """Whether the input is hidden."""
        ...

    def waiting(self) -> bool:
        """Whether a sent message can still be withdrawn."""
        ...

    def take_back(self, *, edit: bool) -> None: ...

    def submit(self, text: str) -> bool:
        """Handle Enter; whether the text belongs in the history."""
        ...

    def key(self, name: str) -> None:
        """A key for the open question: a digit, an arrow or "escape"."""
        ...

    def interrupt(self) -> None: ...

    def leave(self) -> None: ...

    def complete(self, line: str) -> Awaitable[Sequence[Suggestion]]: ...


class ChatScreen(Protocol):
    """One terminal. Finished output is printed once and never drawn again."""

    @property
    def paint(self) -> Paint: ...

    @property
    def animated(self) -> bool:
        """Whether the live rows may be animated."""
        ...

    @property
    def width(self) -> int: ...

    draft: str
    """The unsent input."""

    def show(self, text: str) -> None:
        """Print above the input; colours are part of the text."""
        ...

    def refresh(self) -> None:
        """Redraw the live rows."""
        ...

    def ready(self) -> None:
        """The user can type the next message."""
        ...

    def was_echoed(self, text: str) -> bool:
        """Whether the terminal has already echoed this text."""
        ...

    def attach(self, path: str) -> None:
        """Attach an image to the next message."""
        ...

    def pictures(self, text: str) -> tuple[str, ...]:
        """The images attached to a sent text."""
        ...

    def copy(self, text: str) -> bool:
        """Copy to the clipboard; False if the terminal has none."""
        ...

    def compose(self, draft: str) -> bool:
        """Open the draft in an editor; False if that is not possible."""
        ...

    def clear(self) -> None: ...

    def ring(self) -> None: ...

    def question_opened(self, choices: Sequence[str], *, secret: bool = False) -> None:
        """A question has opened: the draft is set aside until `question_closed`. Input for a
        `secret` one is hidden."""
        ...

    def question_closed(self) -> None: ...

    async def run(self, face: ScreenDelegate) -> None:
        """Run until `close`, or until the terminal is gone."""
        ...

    def close(self) -> None: ...


class PlainScreen:
    """Has no live rows: questions are printed when they open. The terminal itself edits the input
    line, so the program never sees a draft."""

    animated = False

    def __init__(self, stdin: TextIO, stdout: TextIO) -> None:
        self.paint = Paint(colours=False)
        self._stdin = stdin
        self._stdout = stdout
        self._face: ScreenDelegate | None = None
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

    def refresh(self) -> None:
        pass

    def ready(self) -> None:
        if self._face is not None and not self._prompted:
            self._write(f"{self._face.symbol()} ")
            self._prompted = True

    def attach(self, path: str) -> None:
        self._attached.append(path)
        self.show(f"{path} is attached to your next message.")

    def pictures(self, text: str) -> tuple[str, ...]:
        found, self._attached = tuple(self._attached), []
        return found

    def copy(self, text: str) -> bool:
        return False

    def compose(self, draft: str) -> bool:
        return False

    def clear(self) -> None:
        pass

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

    async def run(self, face: ScreenDelegate) -> None:
        self._face = face
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
        assert self._face is not None
        data = os.read(self._stdin.fileno(), 65536)
        if not data:
            self._face.leave()
            return
        *lines, self._typed = (self._typed + data).split(b"\n")
        for line in lines:
            text = line.decode("utf-8", "replace")
            self._prompted = False
            if self._face.submit(text):
                self._seen.append(text)

    def _write(self, text: str) -> None:
        try:
            self._stdout.write(text)
            self._stdout.flush()
        except OSError:
            self._ended.set()
