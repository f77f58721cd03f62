"""Indents new text as in the file when the model's copy of the old text was indented otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from fractions import Fraction
from itertools import pairwise


def indent_of(row: str) -> str:
    return row[: len(row) - len(row.lstrip(" \t"))]


def dedent(rows: Sequence[str]) -> list[str]:
    """Remove the indentation that all rows share, and trailing blanks."""
    trimmed = [row.rstrip() for row in rows]
    indents = [indent_of(row) for row in trimmed if row]
    if not indents:
        return trimmed
    low, high = min(indents), max(indents)
    shared = next((i for i, letter in enumerate(low) if high[i : i + 1] != letter), len(low))
    return [row[shared:] for row in trimmed]


class Indentation:
    """Translates the indentation of a model's text to that of the file. It is learned from the rows
    of the model's old text and the same rows in the file; `text` is the whole file, and `near` the
    place in it."""

    def __init__(
        self,
        old: Sequence[str],
        real: Sequence[str],
        new: Sequence[str],
        text: str,
        near: Sequence[str] = (),
    ) -> None:
        self._learned: dict[str, str] = {}
        for model_row, file_row in _pairs(old, real):
            self._learned.setdefault(indent_of(model_row), indent_of(file_row))
        file_rows = text.split("\n")
        indents = [indent_of(row) for row in (*real, *file_rows)]
        self._letter = "\t" if any("\t" in indent for indent in indents) else " "
        self._ratio = self._learn_ratio((*old, *new), _step(near or real) or _step(file_rows))

    def translate_all(self, rows: Sequence[str]) -> list[str]:
        if all(model == file for model, file in self._learned.items()):
            return list(rows)
        return [self._translate(row) if row.strip() else row for row in rows]

    def _translate(self, row: str) -> str:
        indent = indent_of(row)
        if indent in self._learned:
            return self._learned[indent] + row.lstrip()
        lower = [model for model in self._learned if len(model) <= len(indent)]
        if lower:
            model = max(lower, key=len)
            return self._learned[model] + self._deeper(len(indent) - len(model)) + row.lstrip()
        model, file = min(self._learned.items(), key=lambda pair: len(pair[0]))
        missing = int((len(model) - len(indent)) * self._ratio)
        return file[: max(0, len(file) - missing)] + row.lstrip()

    def _deeper(self, letters: int) -> str:
        """Return this much more indentation; what is not a whole level stays spaces."""
        levels = int(letters * self._ratio)
        rest = int(letters - levels / self._ratio) if self._letter == "\t" else 0
        return self._letter * levels + " " * rest

    def _learn_ratio(self, model_rows: Sequence[str], file_step: int) -> Fraction:
        """Return how many letters in the file correspond to one of the model's indentation."""
        sizes = sorted((len(model), len(file)) for model, file in self._learned.items())
        if not sizes:
            return Fraction(1)
        (model_low, file_low), (model_high, file_high) = sizes[0], sizes[-1]
        if model_high > model_low and file_high > file_low:
            return Fraction(file_high - file_low, model_high - model_low)
        file_step = file_step or _step(model_rows) or 1
        return Fraction(file_step, _step(model_rows) or file_step)


def _pairs(old: Sequence[str], real: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the rows that correspond to each other and are not blank."""
    pairs = list(zip(old, real, strict=False))
    if len(old) != len(real):
        ours, theirs = [row.strip() for row in old], [row.strip() for row in real]
        blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
        pairs = [(old[a + n], real[b + n]) for a, b, size in blocks for n in range(size)]
    return (pair for pair in pairs if pair[0].strip() and pair[1].strip())


def _step(rows: Sequence[str]) -> int:
    """Return by how many letters rows are usually indented below the one before; 0 if unknown."""
    indents = [indent_of(row) for row in rows if row.strip()]
    if any("\t" in indent for indent in indents):
        return 1
    steps = Counter(len(b) - len(a) for a, b in pairwise(indents) if len(b) > len(a))
    return steps.most_common(1)[0][0] if steps else 0
