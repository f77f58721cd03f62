"""Applies the hunks of a patch to a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hermes.core.errors import ToolError
from hermes.tools.edits.approximate import excerpts
from hermes.tools.edits.indent import reindent
from hermes.tools.edits.strategies import fold_text
from hermes.tools.edits.text import Splice, TextLines, find_rows
from hermes.tools.edits.v4a import Hunk, HunkLine

# From strict to lenient; context lines keep the text of the file in each case.
_WAYS: tuple[Callable[[str], str], ...] = (
    str,
    str.rstrip,
    str.strip,
    lambda row: fold_text(row).strip(),
)


def splices(text: str, hunks: Sequence[Hunk]) -> tuple[Splice, ...]:
    """Return all changes of the hunks; ToolError when one does not match or matches twice."""
    lines = TextLines(text)
    taken: list[range] = []
    made: list[Splice] = []
    for number, hunk in enumerate(hunks, 1):
        first = _locate_hunk(lines, hunk, number, taken)
        taken.append(range(first, first + len(hunk.before)))
        made.extend(_changes(lines, hunk, first))
    return tuple(made)


def _locate_hunk(lines: TextLines, hunk: Hunk, number: int, taken: list[range]) -> int:
    floor = taken[-1].stop if taken else 0
    hinted = _below_hints(lines.rows, hunk.hints, floor)
    if not hunk.before:
        return _insertion_place(lines, hunk, number, hinted)
    candidates = _candidates(lines, hunk, taken)
    if not candidates:
        raise ToolError(_not_found(lines, hunk, number))
    ahead = [place for place in candidates if place >= (floor if hinted is None else hinted)]
    if hinted is not None and ahead:
        return ahead[0]
    chosen = ahead or candidates
    if len(chosen) > 1:
        where = ", ".join(str(place + 1) for place in chosen[:10])
        raise ToolError(
            f"hunk {number} fits in {len(chosen)} places (lines {where}): "
            "add context lines or an '@@' line that makes it unique."
        )
    return chosen[0]


def _candidates(lines: TextLines, hunk: Hunk, taken: list[range]) -> list[int]:
    """Return where the old rows of the hunk match, by the strictest comparison that finds any;
    never in rows that an earlier hunk has used."""
    size = len(hunk.before)
    for way in _WAYS:
        found = _matching_rows(lines.rows, hunk.before, way)
        if hunk.at_end:
            found = [place for place in found if place + size == len(lines.rows)]
        free = [
            place
            for place in found
            if all(place + size <= used.start or used.stop <= place for used in taken)
        ]
        if free:
            return free
    return []


def _matching_rows(rows: list[str], wanted: list[str], way: Callable[[str], str]) -> list[int]:
    if any(row.strip() for row in wanted):
        return find_rows(rows, wanted, way)
    # Only blank rows: any place is possible, so the caller's rule for several decides.
    size = len(wanted)
    blank = [not row.strip() for row in rows]
    return [first for first in range(len(rows) - size + 1) if all(blank[first : first + size])]


def _below_hints(rows: list[str], hints: Sequence[str], floor: int) -> int | None:
    """Return the row of the innermost hint; None without hints or when one is missing."""
    found: int | None = None
    for hint in hints:
        start = floor if found is None else found
        found = _hint_row(rows, hint, start)
        if found is None:
            return None
    return found


def _hint_row(rows: list[str], hint: str, start: int) -> int | None:
    order = [*range(start, len(rows)), *range(min(start, len(rows)))]
    whole = (row for row in order if rows[row].strip() == hint)
    part = (row for row in order if hint in rows[row])
    return next(whole, next(part, None))


def _insertion_place(lines: TextLines, hunk: Hunk, number: int, hinted: int | None) -> int:
    if hinted is not None:
        return hinted + 1
    if hunk.hints:
        raise ToolError(f"hunk {number}: no line {hunk.hints[-1]!r} to insert after.")
    return len(lines.rows)


def _changes(lines: TextLines, hunk: Hunk, first: int) -> Iterator[Splice]:
    """Return one splice for each run of removed and added rows; context rows stay."""
    real = lines.rows[first : first + len(hunk.before)]
    at, start = first, first
    added: list[str] = []
    for row in (*hunk.rows, HunkLine(mark=" ", text="")):
        match row.mark:
            case "+":
                added.append(row.text)
            case "-":
                at += 1
            case _:
                if added or at > start:
                    yield lines.splice(start, at, reindent(added, hunk.before, real))
                added = []
                at += 1
                start = at


def _not_found(lines: TextLines, hunk: Hunk, number: int) -> str:
    near = excerpts(lines.text, "\n".join(hunk.before))
    end = " at the end of the file" if hunk.at_end else ""
    message = f"hunk {number}: its context and '-' lines are not in the file{end}."
    return "\n".join((message, *(["Did you mean:", *near] if near else [])))
