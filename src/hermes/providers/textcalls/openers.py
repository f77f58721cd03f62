"""Finds where a call may start, even if only its first characters have arrived."""

from __future__ import annotations

from typing import NamedTuple

from hermes.providers.textcalls.style import CallStyle


class OpenerMatch(NamedTuple):
    """A position, the opener there, and the styles that start with it. Without styles, the text may
    become an opener."""

    at: int
    opener: str
    styles: tuple[CallStyle, ...]


class OpenerIndex:
    """Some openers match anywhere in a line, others only at its start."""

    def __init__(self, styles: tuple[CallStyle, ...], names: tuple[str, ...]) -> None:
        self._styles: dict[str, tuple[CallStyle, ...]] = {}
        lined: set[str] = set()
        anywhere: set[str] = set()
        for style in styles:
            for opener in style.openers_for(names):
                self._styles[opener] = (*self._styles.get(opener, ()), style)
                (lined if style.line else anywhere).add(opener)
        self._firsts = "".join(sorted({opener[0] for opener in anywhere}))
        self._anywhere = tuple(sorted(anywhere, key=len, reverse=True))
        self._lined = tuple(sorted(lined, key=len, reverse=True))
        self._halves = _prefixes(anywhere)
        self._line_halves = _prefixes(lined) | self._halves

    def find(self, text: str, *, at_line_start: bool) -> OpenerMatch | None:
        """The first position of a complete or partial opener."""
        best = self._in_line(text)
        at = 0 if at_line_start else text.find("\n") + 1
        if at == 0 and not at_line_start:
            return best
        while at >= 0 and (best is None or at <= best.at):
            if (lined := self._at_line_start(text, at)) is not None:
                return lined if best is None or lined.at < best.at else best
            at = text.find("\n", at) + 1 or -1
        return best

    def _in_line(self, text: str) -> OpenerMatch | None:
        found: OpenerMatch | None = None
        for first in self._firsts:
            at = text.find(first)
            while at >= 0 and (found is None or at < found.at):
                if text.startswith(self._anywhere, at):
                    found = self._opening(text, at, self._anywhere)
                elif text[at:] in self._halves:
                    found = OpenerMatch(at, "", ())
                at = text.find(first, at + 1)
        return found

    def _at_line_start(self, text: str, at: int) -> OpenerMatch | None:
        start = len(text) - len(text[at:].lstrip(" \t"))
        # A longer opener may still be incomplete.
        if start < len(text) and text[start:] in self._halves:
            return OpenerMatch(start, "", ())
        if text.startswith(self._lined, start):
            return self._opening(text, start, self._lined)
        if start < len(text) and text[start:] in self._line_halves:
            return OpenerMatch(start, "", ())
        return None

    def _opening(self, text: str, at: int, openers: tuple[str, ...]) -> OpenerMatch:
        opener = next(opener for opener in openers if text.startswith(opener, at))
        return OpenerMatch(at, opener, self._styles[opener])


def _prefixes(openers: set[str]) -> frozenset[str]:
    return frozenset(opener[:size] for opener in openers for size in range(1, len(opener)))
