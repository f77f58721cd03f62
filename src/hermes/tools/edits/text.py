"""A text as characters and as lines: spans, splices, and line starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hermes.codec.values import Value


class TextSpan(Value):
    """A piece of a text, from `start` up to but not including `end`."""

    start: int
    end: int


class Splice(Value):
    """`text` replaces what is between `start` and `end`."""

    start: int
    end: int
    text: str


def apply_splices(text: str, splices: Iterable[Splice]) -> str:
    """Apply all splices. They may come in any order but must not overlap."""
    pieces: list[str] = []
    done = 0
    for splice in sorted(splices, key=lambda each: (each.start, each.end)):
        pieces += (text[done : splice.start], splice.text)
        done = splice.end
    return "".join((*pieces, text[done:]))


class TextLines:
    """The rows of a text without their newlines. A final newline begins no further row."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.rows = rows_of(text)
        self.ends_with_newline = text.endswith("\n")
        self._starts = [0]
        for row in self.rows:
            self._starts.append(self._starts[-1] + len(row) + 1)

    def start(self, row: int) -> int:
        return min(self._starts[row], len(self.text))

    def span(self, first: int, count: int, *, newline: bool) -> TextSpan:
        """Return some rows, with or without the newline of the last one."""
        end = self.start(first + count)
        if not newline and self.text[end - 1 : end] == "\n":
            end -= 1
        return TextSpan(start=self.start(first), end=end)

    def splice(self, first: int, stop: int, rows: Sequence[str]) -> Splice:
        """Put `rows` in place of the rows from `first` up to `stop`; a missing final newline stays
        missing."""
        whole = "".join(row + "\n" for row in rows)
        if stop < len(self.rows) or self.ends_with_newline or not self.text:
            return Splice(start=self.start(first), end=self.start(stop), text=whole)
        if first == len(self.rows):
            return Splice(start=len(self.text), end=len(self.text), text="\n" + whole[:-1])
        start = self.start(first) if rows else max(0, self.start(first) - 1)
        return Splice(start=start, end=len(self.text), text=whole[:-1])


def rows_of(text: str) -> list[str]:
    rows = text.split("\n")
    if rows[-1] == "":
        rows.pop()
    return rows


def find_rows(rows: Sequence[str], wanted: Sequence[str], key: Callable[[str], str]) -> list[int]:
    """Return where the wanted rows follow one another, compared by `key`; places may overlap. Blank
    rows alone match nowhere."""
    goal = [key(row) for row in wanted]
    if not any(row.strip() for row in goal):
        return []
    # Searching one string in another takes linear time, whatever the rows are.
    hay = "\n".join(("", *map(key, rows), ""))
    needle = "\n".join(("", *goal, ""))
    found: list[int] = []
    row = seen = 0
    at = hay.find(needle)
    while at >= 0:
        row += hay.count("\n", seen, at)
        found.append(row)
        seen = at
        at = hay.find(needle, at + 1)
    return found


def drop_overlaps(found: Sequence[int], length: int) -> list[int]:
    """Return the places that do not overlap an earlier one."""
    kept: list[int] = []
    for index in found:
        if not kept or index >= kept[-1] + length:
            kept.append(index)
    return kept
