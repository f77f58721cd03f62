"""The limits of a search, and the parser for the output of grep-like programs."""

from __future__ import annotations

import asyncio
from typing import Literal

from hermes.codec.values import Value
from hermes.core.ports import SearchMatch

EngineName = Literal["ripgrep", "grep", "python"]


class SearchLimits(Value):
    """A search that reaches a limit stops there and is marked as cut."""

    matches: int = 5_000
    files: int = 20_000
    candidates: int = 200_000
    seconds: float = 30.0
    line_bytes: int = 4_000


# A longer line is cut while it arrives, so that no line can fill the memory.
HELD_BYTES = 65_536


class MatchReader:
    """Collects matches from a stream until there are enough."""

    def __init__(self, *, most: int, line_bytes: int) -> None:
        self.matches: list[SearchMatch] = []
        self.enough = asyncio.Event()
        self._most = most
        self._line_bytes = line_bytes
        self._count = 0
        self._held = bytearray()
        self._in_long_line = False

    @property
    def full(self) -> bool:
        return self.enough.is_set()

    def add(self, data: bytes) -> None:
        if self.full:
            return
        if self._in_long_line:
            end = data.find(b"\n")
            if end < 0:
                return
            data = data[end:]
            self._in_long_line = False
        self._held += data
        at = 0
        while not self.full:
            zero = self._held.find(b"\0", at)
            end = self._held.find(b"\n", zero) if zero >= 0 else -1
            if end < 0:
                break
            self._take(bytes(self._held[at:zero]), bytes(self._held[zero + 1 : end]))
            at = end + 1
        del self._held[:at]
        zero = self._held.find(b"\0")
        if zero >= 0 and len(self._held) - zero > HELD_BYTES:
            del self._held[zero + HELD_BYTES :]
            self._in_long_line = True

    def _take(self, path: bytes, record: bytes) -> None:
        digits = 0
        while record[digits : digits + 1].isdigit():
            digits += 1
        is_context = record[digits : digits + 1] == b"-"
        if not is_context and self._count == self._most:
            # The context before this match is not shown either.
            while self.matches and self.matches[-1].is_context:
                self.matches.pop()
            self.enough.set()
            return
        self._count += not is_context
        text = record[digits + 1 :].removesuffix(b"\r")[: self._line_bytes]
        self.matches.append(
            SearchMatch(
                path=path.decode("utf-8", "replace"),
                line=int(record[:digits]),
                text=text.decode("utf-8", "replace"),
                is_context=is_context,
            )
        )
