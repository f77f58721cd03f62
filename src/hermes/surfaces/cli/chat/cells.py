"""Text measured and wrapped in terminal cells: wide characters take two, combining ones none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_RUNS = re.compile(r"\s+|\S+")
_JOINER = "\u200d"
# Everything before the last column; two or more spaces separate columns.
_COLUMNS = re.compile(r"\s*\S.*\s{2,}(?=\S)")
HANG = "    "


def cells(text: str) -> int:
    """The width of a text; colour sequences have none."""
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(map(_character_cells, COLOUR.sub("", text) if "\x1b" in text else text))


@lru_cache(maxsize=4096)
def _character_cells(character: str) -> int:
    # Most commands print ASCII and never load the table of widths.
    from wcwidth import wcwidth  # type: ignore[import-untyped]

    return max(0, int(wcwidth(character)))


def cut(text: str, most: int) -> str:
    """A plain text without line breaks, cut to that many cells."""
    if cells(text) <= most:
        return text
    shown, used = "", 0
    for letter in text:
        used += cells(letter)
        if used > most - 1:
            break
        shown += letter
    return shown + "…" if most > 0 else ""


def pad(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


def wrap(text: str, width: int, *, hang: str = "") -> list[str]:
    """One line of plain text as rows of at most `width` cells, broken at spaces and between wide
    characters where possible. Rows after the first begin with `hang`."""
    row, used = first_row(text, width)
    rows = [row]
    while used < len(text):
        text = text[used:]
        row, used = first_row(text, width, lead=hang)
        rows.append(row)
    return rows


def wrap_columns(line: str, width: int) -> list[str]:
    """A line as rows. In a line with columns, continuation rows align with the last column."""
    columns = _COLUMNS.match(line)
    if columns is None:
        hang = line[: len(line) - len(line.lstrip())]
    else:
        hang = " " * cells(columns[0]) if cells(columns[0]) <= width * 0.6 else HANG
    return wrap(line, width, hang=hang)


def first_row(text: str, width: int, *, lead: str = "") -> tuple[str, int]:
    """The first row after `lead`, and how many characters it consumed. Unless it consumed all
    characters, the row is final: appended text does not change it."""
    row, size, used, filled = lead, cells(lead), 0, False
    for part in _parts(text):
        needed = cells(part)
        if size + needed > width and (filled or not part.isspace()):
            if not filled:
                return _break_word(row, part, width, used)
            # The line break replaces the spaces.
            return row.rstrip(), used + (len(part) if part.isspace() else 0)
        row, size, used = row + part, size + needed, used + len(part)
        filled = filled or not part.isspace()
    return row.rstrip(), used


def _break_word(row: str, word: str, width: int, used: int) -> tuple[str, int]:
    """Return as much as fits in a row of a word that is longer than a row."""
    size = cells(row)
    if size + cells(word[0]) > width:
        row, size = "", 0  # an indent that leaves no room
    for count, letter in enumerate(word):
        size += cells(letter)
        if size > width and count:
            return row + word[:count], used + count
    return row + word, used + len(word)


def _parts(text: str) -> Iterator[str]:
    """Unbreakable pieces: spaces, words, single wide characters."""
    for run in _RUNS.finditer(text):
        part = ""
        for letter in run[0]:
            size = cells(letter)
            apart = size == 2 or (size and part and cells(part[0]) == 2)
            if part and apart and not part.endswith(_JOINER):
                yield part
                part = ""
            part += letter
        yield part
