"""Parses patches in the V4A format and applies their hunks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.tools.edits.indentation import Indentation
from hermes.tools.edits.strategies import excerpts, fold_text
from hermes.tools.edits.text import Splice, TextLines, find_rows

BEGIN = "*** Begin Patch"
END = "*** End Patch"
END_OF_FILE = "*** End of File"
_FILE = re.compile(r"\*\*\* (Add|Update|Delete|Move) File:\s*(.+?)\s*$")
_MOVE_TO = re.compile(r"\*\*\* Move to:\s*(.+?)\s*$")
_LINE_NUMBERS = re.compile(r"^-\d+(,\d+)? \+\d+(,\d+)?\s*")


class HunkLine(Value):
    """One line of a hunk. `mark` is " " for kept, "-" for removed, "+" for added."""

    mark: str
    text: str


class Hunk(Value):
    """Neighbouring rows that a patch changes."""

    rows: tuple[HunkLine, ...]
    # Lines above the hunk, outermost first.
    hints: tuple[str, ...] = ()
    # The hunk reaches the end of the file.
    at_end: bool = False

    @property
    def before(self) -> list[str]:
        return [row.text for row in self.rows if row.mark != "+"]


class AddFile(Value, tag="add"):
    path: str
    text: str


class UpdateFile(Value, tag="update"):
    path: str
    hunks: tuple[Hunk, ...]
    target: str = ""


class DeleteFile(Value, tag="delete"):
    path: str


class MoveFile(Value, tag="move"):
    path: str
    target: str


Operation = AddFile | UpdateFile | DeleteFile | MoveFile


def parse(text: str) -> tuple[Operation, ...]:
    """Return the operations in order; raise ToolError that names the line that cannot be read."""
    reader = _Reader(text.replace("\r\n", "\n").split("\n"))
    reader.skip_to_begin()
    operations: list[Operation] = []
    while not reader.at(END):
        operations.append(_operation(reader))
        reader.skip_blank()
    if not operations:
        raise ToolError("The patch is empty: there is no '*** … File:' line in it.")
    return tuple(operations)


class _Reader:
    """The lines of a patch, one after another."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._next = 0

    def skip_to_begin(self) -> None:
        begins = [n for n, line in enumerate(self._lines) if line.strip() == BEGIN]
        if not begins:
            raise ToolError(f"A patch begins with the line '{BEGIN}'.")
        self._next = begins[0] + 1
        self.skip_blank()

    def skip_blank(self) -> None:
        while self.peek().strip() == "":
            self._next += 1

    def peek(self) -> str:
        if self._next >= len(self._lines):
            raise ToolError(f"The patch does not end with '{END}'; it may have been cut off.")
        return self._lines[self._next]

    def take(self) -> str:
        line = self.peek()
        self._next += 1
        return line

    def at(self, marker: str) -> bool:
        return self.peek().strip() == marker

    def at_header(self) -> bool:
        return self.at(END) or _FILE.match(self.peek()) is not None

    def fail(self, what: str) -> ToolError:
        return ToolError(f"Line {self._next} of the patch: {what}")


def _operation(reader: _Reader) -> Operation:
    header = _FILE.match(reader.take())
    if header is None:
        raise reader.fail("'*** Add|Update|Delete|Move File: path' is expected here.")
    kind, path = header.groups()
    match kind:
        case "Add":
            return AddFile(path=path, text=_added_text(reader))
        case "Delete":
            return DeleteFile(path=path)
        case "Move":
            source, arrow, target = path.partition(" -> ")
            if not arrow or not target.strip():
                raise reader.fail("write a move as '*** Move File: old -> new'.")
            return MoveFile(path=source.strip(), target=target.strip())
        case _:
            return _update(path, reader)


def _added_text(reader: _Reader) -> str:
    rows: list[str] = []
    blanks = 0
    while not reader.at_header():
        line = reader.take()
        if line.startswith("+"):
            rows += [""] * blanks + [line[1:]]
            blanks = 0
        elif line.strip():
            raise reader.fail("every line of an added file begins with '+'.")
        else:
            blanks += 1  # counts only when more of the file follows
    return "".join(row + "\n" for row in rows)


def _update(path: str, reader: _Reader) -> UpdateFile:
    target = ""
    if moved := _MOVE_TO.match(reader.peek()):
        target = moved[1]
        reader.take()
    hunks: list[Hunk] = []
    while not reader.at_header():
        if hunk := _read_hunk(reader):
            hunks.append(hunk)
    if not hunks and not target:
        raise reader.fail(f"the update of {path} changes nothing.")
    return UpdateFile(path=path, hunks=tuple(hunks), target=target)


def _read_hunk(reader: _Reader) -> Hunk | None:
    """Read the next hunk, or nothing when only empty lines are left of the file's section."""
    hints: list[str] = []
    while reader.peek().startswith("@@"):
        hint = reader.take().removeprefix("@@").strip().removesuffix("@@").strip()
        if _LINE_NUMBERS.match(hint):
            # The line numbers of a unified diff; text after them is a hint like any other.
            hint = _LINE_NUMBERS.sub("", hint).removeprefix("@@").strip()
        if hint:
            hints.append(hint)
    rows = _rows(reader)
    at_end = reader.at(END_OF_FILE)
    if at_end:
        reader.take()
    if not any(row.mark != " " for row in rows):
        if not rows and not hints:
            return None
        raise reader.fail("this hunk has no '-' or '+' line.")
    return Hunk(rows=tuple(rows), hints=tuple(hints), at_end=at_end)


def _rows(reader: _Reader) -> list[HunkLine]:
    """Wholly empty lines are context when more of the hunk follows, and layout when not."""
    rows: list[HunkLine] = []
    empty: list[HunkLine] = []
    while not (reader.at_header() or reader.peek().startswith("@@") or reader.at(END_OF_FILE)):
        line = reader.take()
        if not line:
            empty.append(HunkLine(mark=" ", text=""))
        elif line[0] in " -+":
            rows += [*empty, HunkLine(mark=line[0], text=line[1:])]
            empty = []
        elif not line.startswith("\\ No newline"):
            raise reader.fail("a line of a hunk begins with ' ', '-' or '+'.")
    return rows + empty if reader.at(END_OF_FILE) else rows


# From strict to lenient; context lines keep the text of the file in each case.
_COMPARISONS: tuple[Callable[[str], str], ...] = (
    str,
    str.rstrip,
    str.strip,
    lambda row: fold_text(row).strip(),
)


def splices(text: str, hunks: Sequence[Hunk]) -> tuple[Splice, ...]:
    """Return all changes of the hunks; raise ToolError when one does not match or matches twice."""
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
        if hinted is None and hunk.hints:
            raise ToolError(f"hunk {number}: no line {hunk.hints[-1]!r} to insert after.")
        return len(lines.rows) if hinted is None else hinted + 1
    candidates = _candidates(lines, hunk, taken)
    if not candidates:
        end = " at the end of the file" if hunk.at_end else ""
        message = [f"hunk {number}: its context and '-' lines are not in the file{end}."]
        if near := excerpts(lines.text, "\n".join(hunk.before)):
            message += ["Did you mean:", *near]
        raise ToolError("\n".join(message))
    ahead = [row for row in candidates if row >= (floor if hinted is None else hinted)]
    if hinted is not None and ahead:
        return ahead[0]
    chosen = ahead or candidates
    if len(chosen) > 1:
        where = ", ".join(str(row + 1) for row in chosen[:10])
        raise ToolError(
            f"hunk {number} fits in {len(chosen)} places (lines {where}): "
            "add context lines or an '@@' line that makes it unique."
        )
    return chosen[0]


def _candidates(lines: TextLines, hunk: Hunk, taken: list[range]) -> list[int]:
    """Return where the old rows of the hunk match, by the strictest comparison that finds any;
    never in rows that an earlier hunk has used."""
    size = len(hunk.before)
    is_blank = not any(row.strip() for row in hunk.before)
    blank = [not row.strip() for row in lines.rows] if is_blank else []
    for key in _COMPARISONS:
        if is_blank:
            # Any row is possible, so the caller's rule for several decides.
            starts = range(len(blank) - size + 1)
            found = [first for first in starts if all(blank[first : first + size])]
        else:
            found = find_rows(lines.rows, hunk.before, key)
        if hunk.at_end:
            found = [row for row in found if row + size == len(lines.rows)]
        free = [
            row
            for row in found
            if all(row + size <= used.start or used.stop <= row for used in taken)
        ]
        if free:
            return free
    return []


def _below_hints(rows: list[str], hints: Sequence[str], floor: int) -> int | None:
    """Return the row of the innermost hint; None without hints or when one is missing."""
    found: int | None = None
    for hint in hints:
        start = floor if found is None else found
        order = [*range(start, len(rows)), *range(min(start, len(rows)))]
        whole = (row for row in order if rows[row].strip() == hint)
        part = (row for row in order if hint in rows[row])
        found = next(whole, next(part, None))
        if found is None:
            return None
    return found


def _changes(lines: TextLines, hunk: Hunk, first: int) -> Iterator[Splice]:
    """Return one splice for each run of removed and added rows; context rows stay."""
    real = lines.rows[first : first + len(hunk.before)]
    new = [row.text for row in hunk.rows if row.mark == "+"]
    indentation = Indentation(hunk.before, real, new, "\n".join(lines.rows))
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
                    yield lines.splice(start, at, indentation.translate_all(added))
                added = []
                at += 1
                start = at
