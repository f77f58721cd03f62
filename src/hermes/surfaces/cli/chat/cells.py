"""Text measured in terminal cells: wide characters take two, combining ones none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from prompt_toolkit.utils import get_cwidth

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_RUNS = re.compile(r"\s+|\S+")
_JOINER = "\u200d"


def cells(text: str) -> int:
    """How many columns a text takes; colours take none."""
    return get_cwidth(_COLOUR.sub("", text))


def cut(text: str, most: int) -> str:
    """A plain text without line breaks, cut to that many cells."""
    if cells(text) <= most:
        return text
    kept, used = "", 0
    for letter in text:
        used += cells(letter)
        if used > most - 1:
            break
        kept += letter
    return kept + "…" if most > 0 else ""


def padded(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


def wrapped(text: str, width: int, *, hang: str = "") -> list[str]:
    """One line of plain text as rows of at most `width` cells. It is broken at spaces and between
    wide characters, and elsewhere where it must be; rows after the first begin with `hang`."""
    rows: list[str] = []
    row, filled = "", False
    for part in _parts(text):
        if cells(row) + cells(part) <= width or (part.isspace() and not filled):
            row, filled = row + part, filled or not part.isspace()
        elif part.isspace():
            # The break stands for the spaces.
            rows.append(row.rstrip())
            row, filled = hang, False
        else:
            if filled:
                rows.append(row.rstrip())
                row = hang
            *full, row = _broken(row, part, width, hang)
            rows += full
            filled = True
    return [*rows, row.rstrip()] if filled or not rows else rows


def _parts(text: str) -> Iterator[str]:
    """Pieces that stay together: spaces, words, single wide characters."""
    for run in _RUNS.findall(text):
        part = ""
        for letter in run:
            size = cells(letter)
            apart = size == 2 or (size and part and cells(part[0]) == 2)
            if part and apart and not part.endswith(_JOINER):
                yield part
                part = ""
            part += letter
        yield part


def _broken(row: str, word: str, width: int, hang: str) -> list[str]:
    """The word after what stands in the row already, in as many rows as it needs."""
    rows: list[str] = []
    start = cells(row)
    for letter in word:
        if cells(row) + cells(letter) > width and cells(row) > start:
            rows.append(row)
            row, start = hang, cells(hang)
        row += letter
    return [*rows, row]
