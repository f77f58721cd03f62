"""A text as characters and as lines: spans, splices and diffs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher

from hermes.codec.values import Value


class TextSpan(Value):
    """A piece of a text, from `start` up to but not including `end`."""

    start: int
    end: int


class Splice(Value):
    """A replacement: `text` replaces what is between `start` and `end`."""

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


CONTEXT_ROWS = 3
SHOWN_CHARS = 4_000
# Comparing takes about the product of both sizes; beyond this, the middle counts as new.
_COMPARED_PAIRS = 4_000_000


class Diff(Value):
    text: str
    added: int
    removed: int


def unified_diff(before: str, after: str, *, old_name: str, new_name: str) -> Diff:
    """Equal texts give an empty diff."""
    old, new = _rows_with_newlines(before), _rows_with_newlines(after)
    if old == new:
        return Diff(text="", added=0, removed=0)
    # Equal rows at both ends are not compared, except those that are shown as context.
    most = min(len(old), len(new))
    head = next((i for i in range(most) if old[i] != new[i]), most)
    tail = next((i for i in range(most - head) if old[-1 - i] != new[-1 - i]), most - head)
    start, end = max(0, head - CONTEXT_ROWS), max(0, tail - CONTEXT_ROWS)
    left, right = old[start : len(old) - end], new[start : len(new) - end]
    if len(left) * len(right) > _COMPARED_PAIRS:
        first, last = head - start, tail - end
        a, b = len(left) - last, len(right) - last
        changed = ("replace", first, a, first, b)
        shared = ("equal", 0, first, 0, first), ("equal", a, len(left), b, len(right))
        groups = [[shared[0], changed, shared[1]]]
    else:
        groups = [*SequenceMatcher(None, left, right).get_grouped_opcodes(CONTEXT_ROWS)]
    lines = [f"--- {old_name}\n", f"+++ {new_name}\n"]
    added = removed = 0
    for group in groups:
        (_, a, _, c, _), (_, _, b, _, d) = group[0], group[-1]
        old_range = _format_range(start + a, start + b)
        lines.append(f"@@ -{old_range} +{_format_range(start + c, start + d)} @@\n")
        for tag, a, b, c, d in group:
            if tag == "equal":
                lines += [_format_row(" ", row) for row in left[a:b]]
                continue
            lines += [_format_row("-", row) for row in left[a:b]]
            lines += [_format_row("+", row) for row in right[c:d]]
            added, removed = added + d - c, removed + b - a
    return Diff(text="".join(lines), added=added, removed=removed)


def shorten(text: str, limit: int = SHOWN_CHARS) -> str:
    """Cut after the last whole line within the limit, and say how much is missing."""
    if len(text) <= limit:
        return text
    cut = text.rfind("\n", 0, limit) + 1 or limit
    left = text[cut:].count("\n") + (not text.endswith("\n"))
    return f"{text[:cut]}… {left} more lines\n"


def _rows_with_newlines(text: str) -> list[str]:
    rows = [row + "\n" for row in text.split("\n")]
    rows[-1] = rows[-1][:-1]
    return rows if rows[-1] else rows[:-1]


def _format_row(mark: str, row: str) -> str:
    return mark + row if row.endswith("\n") else f"{mark}{row}\n\\ No newline at end of file\n"


def _format_range(start: int, stop: int) -> str:
    count = stop - start
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"
