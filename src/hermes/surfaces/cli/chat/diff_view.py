"""Diffs as rows with line numbers and colours."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from hermes.commands.formatting import escape_invisible, sanitize
from hermes.surfaces.cli.chat.cells import cut
from hermes.surfaces.cli.chat.screen import Paint, Role

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
LEAST_CELLS = 8

Kind = Literal["added", "removed", "context", "file", "gap"]
_SIGNS: dict[Kind, str] = {"added": "+", "removed": "-", "context": " "}
_WORDS: dict[Kind, str] = {"added": "added", "removed": "removed", "context": "unchanged"}
# The lines of the new file.
_NEW_KINDS = ("added", "context")
_ROLES: dict[Kind, Role] = {"added": "added", "removed": "removed", "context": "dim"}


class DiffLine(NamedTuple):
    """One line of a diff, with its number in the new file, or the old one if it was removed."""

    kind: Kind
    number: int
    text: str
    file: str = ""


def parse_diff(diff: str) -> list[DiffLine]:
    """The lines of a unified diff. `file` lines name the file if there are several; a `gap` stands
    for lines that are left out."""
    source = diff.rstrip("\n").split("\n")
    heads = {n for n, line in enumerate(source[1:]) if _is_head(source[n], line)}
    lines, file, old, new, in_hunk = list[DiffLine](), "", 1, 1, False
    for n, line in enumerate(source):
        if n in heads:
            in_hunk = False
        elif n - 1 in heads:
            file = line.removeprefix("+++ ").removeprefix("b/")
            lines += [DiffLine("file", 0, file, file)] if len(heads) > 1 else []
        elif hunk := _HUNK.match(line):
            lines += [DiffLine("gap", 0, "", file)] if in_hunk else []
            old, new, in_hunk = int(hunk[1]), int(hunk[2]), True
        elif line.startswith("+"):
            lines.append(DiffLine("added", new, line[1:], file))
            new += 1
        elif line.startswith("-"):
            lines.append(DiffLine("removed", old, line[1:], file))
            old += 1
        elif line.startswith(" "):
            lines.append(DiffLine("context", new, line[1:], file))
            old, new = old + 1, new + 1
        elif line and not line.startswith("\\"):
            lines.append(DiffLine("gap", 0, line, file))
    return lines


def _is_head(line: str, following: str) -> bool:
    """Whether the two lines name a file, and are not a removed and an added line."""
    names = ("--- a/", "--- /dev/null")
    return line.startswith(names) and following.startswith(("+++ b/", "+++ /dev/null"))


def diff_rows(
    diff: str, paint: Paint, width: int, *, most: int = 0, prefix: str = "", exact: bool = False
) -> list[str]:
    """The rows of a diff, `most` of them if given. `exact` shows invisible characters."""
    lines = parse_diff(diff)
    shown = lines[:most] if most else lines
    clean = escape_invisible if exact else sanitize
    digits = len(str(max((line.number for line in shown), default=0)))
    room = max(LEAST_CELLS, width - len(prefix) - digits - 3)
    # An exact line may be longer than the window: nothing of it is hidden.
    texts = [clean(line.text) if exact else cut(clean(line.text), room) for line in shown]
    coloured = _highlight(shown, texts) if paint.colours else texts
    rows = [
        paint(prefix, "dim") + _row(line, text, plain, digits, paint)
        for line, text, plain in zip(shown, coloured, texts, strict=True)
    ]
    if hidden := len(lines) - len(shown):
        rows.append(paint(f"{prefix}… {hidden} more lines", "dim"))
    return rows


def _row(line: DiffLine, text: str, plain: str, digits: int, paint: Paint) -> str:
    if line.kind == "file":
        return paint(plain, "bold")
    if line.kind == "gap":
        return paint(f"{' ' * digits} ⋮ {plain}".rstrip(), "dim")
    role = _ROLES[line.kind]
    if paint.skin.words:
        return f"{_WORDS[line.kind]} {line.number}: {plain}"
    gutter = f"{line.number:>{digits}} {_SIGNS[line.kind]} "
    if line.kind == "added" and text != plain:
        return paint(gutter, role) + text
    return paint(gutter + plain, role).rstrip()


def _highlight(lines: list[DiffLine], texts: list[str]) -> list[str]:
    """The texts with the syntax colours of their files. Removed lines keep one colour: the new
    code is what matters."""
    coloured = list(texts)
    for file in dict.fromkeys(line.file for line in lines):
        numbers = [
            n for n, line in enumerate(lines) if line.file == file and line.kind in _NEW_KINDS
        ]
        if not file or not numbers:
            continue
        from hermes.surfaces.cli.chat.code_colours import highlight, language_of

        language = language_of(file)
        painted = highlight(language, tuple(texts[n] for n in numbers)) if language else ()
        for n, text in zip(numbers, painted, strict=False):
            coloured[n] = text
    return coloured
