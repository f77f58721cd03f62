"""Removes recalled memory from a model's reply when the model repeats it."""

from __future__ import annotations

from hermes.memory.attached import CLOSE, OPEN


class EchoFilter:
    """Filters one text stream piece by piece. A fence that is never closed is not removed: its text
    follows at the end, without the mark."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False

    def feed(self, piece: str) -> str:
        """Returns the text that can be shown now; a possible start of a mark is held back."""
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
                keep = _partial_mark_length(self._held)
                shown += self._held[: len(self._held) - keep]
                self._held = self._held[len(self._held) - keep :]
                return shown
            shown += before
            self._held, self._inside = rest, mark == OPEN

    def finish(self) -> str:
        """Returns the held-back text at the end of the stream."""
        held, self._held = self._held, ""
        return held


def remove_echo(text: str) -> str:
    echo = EchoFilter()
    return echo.feed(text) + echo.finish()


def _first_mark(text: str) -> tuple[str, str, str]:
    places = [(text.find(mark), mark) for mark in (OPEN, CLOSE) if mark in text]
    if not places:
        return text, "", ""
    at, mark = min(places)
    return text[:at], mark, text[at + len(mark) :]


def _partial_mark_length(text: str) -> int:
    """Returns how many characters at the end may be the start of a mark."""
    for length in range(min(len(text), len(CLOSE) - 1), 0, -1):
        if OPEN.startswith(text[-length:]) or CLOSE.startswith(text[-length:]):
            return length
    return 0
