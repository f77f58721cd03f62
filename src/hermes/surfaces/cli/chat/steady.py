"""A terminal that does not flicker: what belongs together is written in one go and no longer than
it must be, and a narrower window leaves no remains of the live part behind."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.layout.layout import Layout
from prompt_toolkit.layout.screen import Screen
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import Renderer
from prompt_toolkit.styles import BaseStyle

from hermes.surfaces.cli.chat.cells import cells
from hermes.surfaces.cli.chat.thrift import Thrift

# Rows that were finished where they stood within this many lags may have been finished in a window
# that had changed already.
DOUBT_LAGS = 5
LEAST_DOUBT_SECONDS = 0.1


class Passed(NamedTuple):
    """A row that was finished where it stood, when, and in a window of which size. `widest` is
    the widest of all rows that were drawn then; a `loose` one may have been joined to what is left
    above it."""

    row: str
    at: float
    size: Size
    widest: int
    loose: bool


class SteadyOutput(Vt100_Output):
    """Output that can be held back for a moment, and that falls silent once the terminal is
    gone. Where the cursor stands is never asked: the answers would mix with what is typed. `calm`
    means that what is drawn next reaches no edge and needs no new rows."""

    def __init__(self, stdout: TextIO, term: str) -> None:
        super().__init__(stdout, self._size_now, term=term, enable_cpr=False)
        self.gone = False
        self.calm = False
        self._thrift = Thrift()
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
        if self._buffer:
            self._buffer[:] = [self._thrift.shortened("".join(self._buffer), calm=self.calm)]
            self.calm = False
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
        self,
        style: BaseStyle,
        output: SteadyOutput,
        *,
        lag_seconds: float | None,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(style, output)
        self._lag_seconds = lag_seconds
        self._clock = clock
        self._drawn_at = 0.0
        self._passed: deque[Passed] = deque()
        self._leaves_remains = False

    def render(self, app: Application[Any], layout: Layout, is_done: bool = False) -> None:
        self.say_again()
        self._follow_reflow()
        output, before = self.output, self._last_screen
        assert isinstance(output, SteadyOutput)
        with output.together():
            super().render(app, layout, is_done)
            now = self._last_screen
            output.calm = before is not None and now is not None and self._is_calm(before, now)
        self._drawn_at = self._clock()

    def pass_on(self, rows: Sequence[str]) -> bool:
        """Let the first rows of what is drawn become finished ones, where they are the beginnings
        of these rows: only what is missing of them is written. False when that cannot be."""
        screen, size = self._last_screen, self._last_size
        if screen is None or size != self.output.get_size() or len(rows) >= screen.height:
            return False
        drawn = [self._plain_text(screen, number) for number in range(len(rows))]
        for row, begun in zip(rows, drawn, strict=True):
            if begun is None or not row.startswith(begun) or not _is_plain(row, size.columns):
                return False
        self._complete(rows, [begun or "" for begun in drawn])
        self._move_down(len(rows), screen)
        self._note_passed(rows, screen, size)
        return True

    def say_again(self) -> None:
        """Rows that were finished where they stood shortly before the window was found to have
        changed may not have stood there any more: a narrower one breaks rows, and what is added to
        a broken row is cut off or covered. They are written once more, whole: better twice than
        not at all."""
        self._drop_certain()
        size = self.output.get_size()
        before = [passed for passed in self._passed if passed.size != size]
        if not before:
            return
        self._passed = deque(passed for passed in self._passed if passed.size == size)
        doubtful = [each.row for each in before if each.loose or each.widest > size.columns]
        if doubtful:
            self.erase()
            self.output.write_raw("".join(f"{row}\r\n" for row in doubtful))

    def _note_passed(self, rows: Sequence[str], screen: Screen, size: Size) -> None:
        drawn = (_used(screen, number) for number in range(screen.height))
        widest = max((*drawn, *map(cells, rows)), default=0)
        now, loose = self._clock(), self._leaves_remains
        self._passed.extend(Passed(row, now, size, widest, loose) for row in rows)
        self._leaves_remains = False

    def _drop_certain(self) -> None:
        doubt = max(LEAST_DOUBT_SECONDS, DOUBT_LAGS * (self._lag_seconds or 0.0))
        while self._passed and self._clock() - self._passed[0].at > doubt:
            self._passed.popleft()

    def _complete(self, rows: Sequence[str], drawn: Sequence[str]) -> None:
        for number, (row, begun) in enumerate(zip(rows, drawn, strict=True)):
            if row != begun:
                y = self._cursor_pos.y
                self.output.cursor_up(y - number)
                self.output.cursor_down(number - y)
                self.output.write_raw("\r")
                self.output.cursor_forward(cells(begun))
                self.output.write_raw(row[len(begun) :])
                self._cursor_pos = Point(x=cells(row), y=number)

    def _move_down(self, count: int, screen: Screen) -> None:
        """All but the first rows, so that as many empty ones are at the top of the live part."""
        self.output.cursor_down(screen.height - 1 - self._cursor_pos.y)
        # These make room below, where there is none.
        self.output.write_raw("\r" + "\n" * count)
        self.output.cursor_up(screen.height - 1)
        self.output.write_raw(f"\x1b[{count}L")
        for number in range(count):
            screen.data_buffer[number].clear()
            screen.zero_width_escapes[number].clear()
        self._cursor_pos = Point(x=0, y=0)

    def _plain_text(self, screen: Screen, number: int) -> str | None:
        """A drawn row; None if any of it has a colour."""
        row, has_style = screen.data_buffer[number], self._style_string_has_style
        cells = [row[x] for x in range(_used(screen, number))]
        if has_style is None or any(has_style[cell.style] for cell in cells):
            return None
        return "".join(cell.char for cell in cells)

    def _is_calm(self, before: Screen, now: Screen) -> bool:
        columns = self.output.get_size().columns
        if now.height > before.height:
            return False
        return all(_used(now, row) < columns for row in range(now.height))

    def erase(self, leave_alternate_screen: bool = True) -> None:
        self._follow_reflow()
        super().erase(leave_alternate_screen)

    def _follow_reflow(self) -> None:
        columns = self.output.get_size().columns
        screen, size = self._last_screen, self._last_size
        if screen is None or size is None or columns >= size.columns:
            return
        if not self._can_tell():
            self._leaves_remains = True
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
        return lag is not None and self._clock() - self._drawn_at > lag


def _is_plain(row: str, columns: int) -> bool:
    return "\x1b" not in row and cells(row) < columns


def _used(screen: Screen, row: int) -> int:
    """The cells of a drawn row up to its last visible character."""
    drawn = screen.data_buffer[row]
    return max((x + cell.width for x, cell in drawn.items() if cell.char.strip()), default=0)
