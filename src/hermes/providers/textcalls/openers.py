"""Finds where in a text a call may begin, also when only the first characters have come."""

from __future__ import annotations

from typing import NamedTuple

from hermes.providers.textcalls.style import Style


class Opening(NamedTuple):
    """A place, the opener that stands there, and the styles that begin with it. No styles: what
    has come may become an opener."""

    at: int
    opener: str
    styles: tuple[Style, ...]


class Openers:
    """Some are found in the middle of a line, others at its start only."""

    def __init__(self, styles: tuple[Style, ...], names: tuple[str, ...]) -> None:
        self._styles: dict[str, tuple[Style, ...]] = {}
        lined: set[str] = set()
        anywhere: set[str] = set()
        for style in styles:
            for opener in style.beginnings(names):
                self._styles[opener] = (*self._styles.get(opener, ()), style)
                (lined if style.line else anywhere).add(opener)
        self._firsts = "".join(sorted({opener[0] for opener in anywhere}))
        self._anywhere = tuple(sorted(anywhere, key=len, reverse=True))
        self._lined = tuple(sorted(lined, key=len, reverse=True))
        self._halves = _beginnings(anywhere)
        self._line_halves = _beginnings(lined) | self._halves

    def find(self, text: str, *, at_line_start: bool) -> Opening | None:
        """The first place of a whole or half opener."""
        best = self._in_line(text)
        at = 0 if at_line_start else text.find("\n") + 1
        if at == 0 and not at_line_start:
            return best
        while at >= 0 and (best is None or at <= best.at):
            if (lined := self._at_line_start(text, at)) is not None:
                return lined if best is None or lined.at < best.at else best
            at = text.find("\n", at) + 1 or -1
        return best

    def _in_line(self, text: str) -> Opening | None:
        found: Opening | None = None
        for first in self._firsts:
            at = text.find(first)
            while at >= 0 and (found is None or at < found.at):
                if text.startswith(self._anywhere, at):
                    found = self._opening(text, at, self._anywhere)
                elif text[at:] in self._halves:
                    found = Opening(at, "", ())
                at = text.find(first, at + 1)
        return found

    def _at_line_start(self, text: str, at: int) -> Opening | None:
        start = len(text) - len(text[at:].lstrip(" \t"))
        # A longer opener that may stand anywhere can be on its way.
        if start < len(text) and text[start:] in self._halves:
            return Opening(start, "", ())
        if text.startswith(self._lined, start):
            return self._opening(text, start, self._lined)
        if start < len(text) and text[start:] in self._line_halves:
            return Opening(start, "", ())
        return None

    def _opening(self, text: str, at: int, openers: tuple[str, ...]) -> Opening:
        opener = next(opener for opener in openers if text.startswith(opener, at))
        return Opening(at, opener, self._styles[opener])


def _beginnings(openers: set[str]) -> frozenset[str]:
    return frozenset(opener[:size] for opener in openers for size in range(1, len(opener)))
