"""A flicker-free renderer: little output, written in one piece, that survives a resize."""

from __future__ import annotations

import os
import re
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

HIDE = "\x1b[?25l"
SHOW = "\x1b[?12l\x1b[?25h"
NO_WRAP = "\x1b[?7l"
WRAP = "\x1b[?7h"
# Below this size the moving cursor is not visible.
SHORT = 240

_COLOUR = re.compile(r"\x1b\[([0-9;]*)m")
_DOWN = re.compile(r"(?:\r\n){2,}(?=\x1b\[\d*C|$)")
# Text in a row further up, and the way back.
_ABOVE = re.compile(
    r"\x1b\[(\d*)A((?:\x1b\[\d*[CD])?[^\x00-\x1f\x7f]+)\r\x1b\[(\d*)B((?:\x1b\[\d*C)?)"
)
_END = re.compile(r"\r(?:\x1b\[\d*B)?((?:\x1b\[\d*C)?)$")
SAVE = "\x1b7"
RESTORE = "\x1b8"


class SequenceOptimizer:
    """Tracks the text attributes and the column of the cursor, and omits sequences that repeat
    them."""

    def __init__(self) -> None:
        self._plain = False
        self._column: str | None = None

    def shorten(self, text: str, *, calm: bool) -> str:
        """`calm` means that no text reaches the edge, and no new rows are needed."""
        if "\x1b[J" in text:
            # After a clear, the attributes are unknown.
            self._plain = False
        text = _COLOUR.sub(self._colour, text)
        if calm and len(text) < SHORT:
            if text.count(HIDE) == 1 and text.count(SHOW) == 1:
                text = text.replace(HIDE, "").replace(SHOW, "")
            text = text.replace(NO_WRAP, "").replace(WRAP, "")
            text = _DOWN.sub(lambda found: f"\r\x1b[{len(found[0]) // 2}B", text)
        column, end = self._column, _END.search(text)
        self._column = end[1] if end else None
        above = _ABOVE.fullmatch(text) if calm and column is not None else None
        if above and (above[1], column) == (above[3], above[4]):
            return f"{SAVE}\x1b[{above[1]}A{above[2]}{RESTORE}"
        return text

    def _colour(self, found: re.Match[str]) -> str:
        resets = found[1] in ("", "0")
        if resets and self._plain:
            return ""
        self._plain = resets
        return found[0]


# Rows completed in place within this many lags may belong to a window that had already changed.
DOUBT_LAGS = 5
LEAST_DOUBT_SECONDS = 0.1


class CompletedRow(NamedTuple):
    """A row that was completed in place, with the time and the window size. `widest` is the width
    of the widest row drawn then; a `loose` row may have been joined to remains above it."""

    row: str
    at: float
    size: Size
    widest: int
    loose: bool


class FlickerFreeOutput(Vt100_Output):
    """Buffers output, and discards it once the terminal is gone. It never queries the cursor
    position, because the reply would mix with typed keys. `calm` means that the next drawing
    reaches no edge and needs no new rows."""

    def __init__(self, stdout: TextIO, term: str) -> None:
        super().__init__(stdout, self._size_now, term=term, enable_cpr=False)
        self.gone = False
        self.calm = False
        self._optimizer = SequenceOptimizer()
        self._held = 0
        self._last_size = Size(rows=24, columns=80)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write everything inside in one piece."""
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
            self._buffer[:] = [self._optimizer.shorten("".join(self._buffer), calm=self.calm)]
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


class FlickerFreeRenderer(Renderer):
    """Finds the start of its drawing even after the terminal reflowed its rows for a narrower
    window. The terminal reports the new width after up to `lag_seconds`; None means that it
    never reflows."""

    def __init__(
        self,
        style: BaseStyle,
        output: FlickerFreeOutput,
        *,
        lag_seconds: float | None,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(style, output)
        self._lag_seconds = lag_seconds
        self._clock = clock
        self._drawn_at = 0.0
        self._passed: deque[CompletedRow] = deque()
        self._leaves_remains = False

    def render(self, app: Application[Any], layout: Layout, is_done: bool = False) -> None:
        self.repeat_doubtful_rows()
        self._follow_reflow()
        output, before = self.output, self._last_screen
        assert isinstance(output, FlickerFreeOutput)
        with output.together():
            super().render(app, layout, is_done)
            now, columns = self._last_screen, output.get_size().columns
            output.calm = (
                before is not None
                and now is not None
                and now.height <= before.height
                and all(_drawn_cells(now, row) < columns for row in range(now.height))
            )
        self._drawn_at = self._clock()

    def complete_in_place(self, rows: Sequence[str]) -> bool:
        """Turn the first drawn rows into finished ones by writing only what they lack. False if
        they are not prefixes of these rows."""
        screen, size = self._last_screen, self._last_size
        if screen is None or size != self.output.get_size() or len(rows) >= screen.height:
            return False
        drawn = [self._plain_text(screen, number) for number in range(len(rows))]
        for row, begun in zip(rows, drawn, strict=True):
            is_plain = "\x1b" not in row and cells(row) < size.columns
            if begun is None or not row.startswith(begun) or not is_plain:
                return False
        for number, (row, begun) in enumerate(zip(rows, drawn, strict=True)):
            self._complete(number, row, begun or "")
        self._move_down(len(rows), screen)
        widths = (_drawn_cells(screen, number) for number in range(screen.height))
        widest = max((*widths, *map(cells, rows)), default=0)
        now, loose = self._clock(), self._leaves_remains
        self._passed.extend(CompletedRow(row, now, size, widest, loose) for row in rows)
        self._leaves_remains = False
        return True

    def repeat_doubtful_rows(self) -> None:
        """Write rows again that were completed in place shortly before a resize was noticed. A
        narrower window breaks rows, so the addition may be cut off or covered: better twice than
        lost."""
        doubt = max(LEAST_DOUBT_SECONDS, DOUBT_LAGS * (self._lag_seconds or 0.0))
        while self._passed and self._clock() - self._passed[0].at > doubt:
            self._passed.popleft()
        size = self.output.get_size()
        before = [passed for passed in self._passed if passed.size != size]
        if not before:
            return
        self._passed = deque(passed for passed in self._passed if passed.size == size)
        doubtful = [each.row for each in before if each.loose or each.widest > size.columns]
        if doubtful:
            self.erase()
            self.output.write_raw("".join(f"{row}\r\n" for row in doubtful))

    def _complete(self, number: int, row: str, begun: str) -> None:
        if row != begun:
            y = self._cursor_pos.y
            self.output.cursor_up(y - number)
            self.output.cursor_down(number - y)
            self.output.write_raw("\r")
            self.output.cursor_forward(cells(begun))
            self.output.write_raw(row[len(begun) :])
            self._cursor_pos = Point(x=cells(row), y=number)

    def _move_down(self, count: int, screen: Screen) -> None:
        """Insert this many empty rows at the top of the live rows."""
        self.output.cursor_down(screen.height - 1 - self._cursor_pos.y)
        # Newlines scroll if there is no room below.
        self.output.write_raw("\r" + "\n" * count)
        self.output.cursor_up(screen.height - 1)
        self.output.write_raw(f"\x1b[{count}L")
        for number in range(count):
            screen.data_buffer[number].clear()
            screen.zero_width_escapes[number].clear()
        self._cursor_pos = Point(x=0, y=0)

    def _plain_text(self, screen: Screen, number: int) -> str | None:
        """The text of a drawn row; None if it has colours."""
        row, has_style = screen.data_buffer[number], self._style_string_has_style
        used = [row[x] for x in range(_drawn_cells(screen, number))]
        if has_style is None or any(has_style[cell.style] for cell in used):
            return None
        return "".join(cell.char for cell in used)

    def erase(self, leave_alternate_screen: bool = True) -> None:
        self._follow_reflow()
        super().erase(leave_alternate_screen)

    def _follow_reflow(self) -> None:
        columns = self.output.get_size().columns
        screen, size = self._last_screen, self._last_size
        if screen is None or size is None or columns >= size.columns:
            return
        # Only rows that were certainly drawn before the resize were reflowed by it. Otherwise
        # remains on the screen are better than a lost row.
        lag = self._lag_seconds
        if lag is None or self._clock() - self._drawn_at <= lag:
            self._leaves_remains = True
            return
        x, y = self._cursor_pos
        above = sum(max(1, -(-_drawn_cells(screen, row) // columns)) for row in range(y))
        self._cursor_pos = Point(x=x % columns, y=above + x // columns)
        self._last_size = Size(rows=size.rows, columns=columns)
        self._last_screen = None


def _drawn_cells(screen: Screen, row: int) -> int:
    """The cells of a drawn row up to its last visible character."""
    drawn = screen.data_buffer[row]
    return max((x + cell.width for x, cell in drawn.items() if cell.char.strip()), default=0)
