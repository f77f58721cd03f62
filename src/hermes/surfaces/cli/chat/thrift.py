"""Terminal sequences with the same effect in fewer bytes."""

from __future__ import annotations

import re

HIDE = "\x1b[?25l"
SHOW = "\x1b[?12l\x1b[?25h"
NO_WRAP = "\x1b[?7l"
WRAP = "\x1b[?7h"
# So little is drawn at once that nobody sees the cursor move.
SHORT = 240

_COLOUR = re.compile(r"\x1b\[([0-9;]*)m")
_DOWN = re.compile(r"(?:\r\n){2,}(?=\x1b\[\d*C|$)")
# Letters in a row further up, and the way back.
_ABOVE = re.compile(
    r"\x1b\[(\d*)A((?:\x1b\[\d*[CD])?[^\x00-\x1f\x7f]+)\r\x1b\[(\d*)B((?:\x1b\[\d*C)?)"
)
_END = re.compile(r"\r(?:\x1b\[\d*B)?((?:\x1b\[\d*C)?)$")
SAVE = "\x1b7"
RESTORE = "\x1b8"


class Thrift:
    """Knows whether letters are plain by now, and in which column the cursor was left: to say so
    again is a waste."""

    def __init__(self) -> None:
        self._plain = False
        self._column: str | None = None

    def shortened(self, text: str, *, calm: bool) -> str:
        """`calm` says that no text reaches the edge and that all rows are there already."""
        if "\x1b[J" in text:
            # A fresh start: whoever wrote last may have left anything behind.
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
