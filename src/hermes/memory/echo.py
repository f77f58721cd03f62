"""Takes out of a model's words what was only shown to it beside a message of the person."""

from __future__ import annotations

from hermes.memory.attached import CLOSE, OPEN


class Echo:
    """For one stream of text, piece by piece. A block that is never closed was none: its words
    come at the end, without the mark."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False

    def said(self, piece: str) -> str:
        """What can be shown now; a beginning that may become a mark waits for the next piece."""
        self._held += piece
        shown = ""
        while True:
            if self._inside:
                _, closed, rest = self._held.partition(CLOSE)
                if not closed:
                    return shown
                self._held, self._inside = rest, False
            before, mark, rest = _first_mark(self._held)
            if not mark:
                keep = _begun(self._held)
                shown += self._held[: len(self._held) - keep]
                self._held = self._held[len(self._held) - keep :]
                return shown
            shown += before
            self._held, self._inside = rest, mark == OPEN

    def rest(self) -> str:
        """What was still waiting when the stream ended."""
        held, self._held = self._held, ""
        return held


def without_echo(text: str) -> str:
    echo = Echo()
    return echo.said(text) + echo.rest()


def _first_mark(text: str) -> tuple[str, str, str]:
    """What stands before the first mark, the mark, and what follows."""
    places = [(text.find(mark), mark) for mark in (OPEN, CLOSE) if mark in text]
    if not places:
        return text, "", ""
    at, mark = min(places)
    return text[:at], mark, text[at + len(mark) :]


def _begun(text: str) -> int:
    """How many characters at the end may be the beginning of a mark."""
    for length in range(min(len(text), len(CLOSE) - 1), 0, -1):
        if OPEN.startswith(text[-length:]) or CLOSE.startswith(text[-length:]):
            return length
    return 0
