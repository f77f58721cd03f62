"""Computes the common indentation of a block, and adapts new lines to the file."""

from __future__ import annotations

from collections.abc import Sequence


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


def reindent(new: Sequence[str], old: Sequence[str], real: Sequence[str]) -> list[str]:
    """Indent new rows as in the file, learned from the rows in the model's text (`old`) and the
    same rows in the file (`real`)."""
    learned: dict[str, str] = {}
    for told, found in zip(old, real, strict=False):
        if told.strip() and found.strip():
            learned.setdefault(indent_of(told), indent_of(found))
    if all(told == found for told, found in learned.items()):
        return list(new)
    return [_translate_indent(row, learned) if row.strip() else row for row in new]


def _translate_indent(row: str, learned: dict[str, str]) -> str:
    indent = indent_of(row)
    known = [told for told in learned if indent.startswith(told)]
    if known:
        told = max(known, key=len)
        return learned[told] + _in_unit(indent[len(told) :], told, learned[told]) + row.lstrip()
    told, found = min(learned.items(), key=lambda pair: len(pair[0]))
    # Less deep than any known row: reduce as far as the file allows.
    missing = (len(told) - len(indent)) // _width(told, found)
    return found[: max(0, len(found) - missing)] + row.lstrip()


def _in_unit(rest: str, told: str, found: str) -> str:
    """Convert deeper indentation from spaces to the tabs of the file."""
    width = _width(told, found)
    if width == 1 or set(rest) != {" "}:
        return rest
    return "\t" * (len(rest) // width) + " " * (len(rest) % width)


def _width(told: str, found: str) -> int:
    """Return how many characters of the model's indentation make one of the file's: 1 unless it
    used spaces for tabs."""
    if set(told) == {" "} and set(found) == {"\t"}:
        return max(1, len(told) // len(found))
    return 1
