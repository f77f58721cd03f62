"""Shortens terminal sequences. Without it a streamed answer takes more than four times its bytes,
which is slow over a remote shell."""

from __future__ import annotations

import re

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
        """`calm`: no text reaches the edge, and no new rows are needed."""
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
