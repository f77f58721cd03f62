"""A terminal that does not flicker: what belongs together is written in one go, and a narrower
window leaves no remains of the live part behind."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.layout.layout import Layout
from prompt_toolkit.layout.screen import Screen
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import Renderer
from prompt_toolkit.styles import BaseStyle


class SteadyOutput(Vt100_Output):
    """Output that can be held back for a moment, and that falls silent once the terminal is
    gone. Where the cursor stands is never asked: the answers would mix with what is typed."""

    def __init__(self, stdout: TextIO, term: str) -> None:
        super().__init__(stdout, self._size_now, term=term, enable_cpr=False)
        self.gone = False
        self._held = 0
        self._last_size = Size(rows=24, columns=80)

    @contextmanager
    def together(self) -> Iterator[None]:
        """All that is written inside reaches the terminal at once."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            self.flush()

    def flush(self) -> None:
        if self._held:
            return
        if self.gone:
            self._buffer.clear()
            return
        try:
            super().flush()
        except OSError:
            self.gone = True

    def _size_now(self) -> Size:
        try:
            columns, rows = os.get_terminal_size(self.stdout.fileno())
        except OSError:
            return self._last_size
        if columns and rows:
            self._last_size = Size(rows=rows, columns=columns)
        return self._last_size


class SteadyRenderer(Renderer):
    """A renderer that finds the beginning of what it drew, also after the terminal has broken
    its rows anew for a narrower window. A terminal may be narrower for up to `lag_seconds` before
    it says so; one that never breaks rows anew has None."""

    def __init__(
        self, style: BaseStyle, output: SteadyOutput, *, lag_seconds: float | None
    ) -> None:
        super().__init__(style, output)
        self._lag_seconds = lag_seconds
        self._drawn_at = 0.0

    def render(self, app: Application[Any], layout: Layout, is_done: bool = False) -> None:
        self._follow_reflow()
        super().render(app, layout, is_done)
        self._drawn_at = time.monotonic()

    def erase(self, leave_alternate_screen: bool = True) -> None:
        self._follow_reflow()
        super().erase(leave_alternate_screen)

    def _follow_reflow(self) -> None:
        columns = self.output.get_size().columns
        screen, size = self._last_screen, self._last_size
        if screen is None or size is None or columns >= size.columns or not self._can_tell():
            return
        x, y = self._cursor_pos
        above = sum(max(1, -(-_used(screen, row) // columns)) for row in range(y))
        self._cursor_pos = Point(x=x % columns, y=above + x // columns)
        self._last_size = Size(rows=size.rows, columns=columns)
        self._last_screen = None

    def _can_tell(self) -> bool:
        """Whether the rows were drawn before the window changed, and broken anew by that. If they
        may have been drawn afterwards, a remainder is better than a finished row too few."""
        lag = self._lag_seconds
        return lag is not None and time.monotonic() - self._drawn_at > lag


def _used(screen: Screen, row: int) -> int:
    """The cells of a drawn row up to its last visible character."""
    drawn = screen.data_buffer[row]
    return max((x + cell.width for x, cell in drawn.items() if cell.char.strip()), default=0)
