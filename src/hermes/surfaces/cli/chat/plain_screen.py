"""The chat on a terminal without cursor control: lines in, lines out."""

from __future__ import annotations

import asyncio
import os
import shutil
import termios
from collections.abc import Sequence
from typing import TextIO

from hermes.surfaces.cli.chat.paint import Paint
from hermes.surfaces.cli.chat.screen import ScreenDelegate


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
