"""Unified diffs that stay cheap on large texts, and short enough to show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from hermes.codec.values import Value

CONTEXT_ROWS = 3
SHOWN_CHARS = 4_000
# Comparing takes about the product of both sizes; beyond this, the middle counts as new.
_COMPARED_PAIRS = 4_000_000

Change = tuple[int, int, int, int]  # rows a..b of the old text became rows c..d of the new one


class Diff(Value):
    text: str
    added: int
    removed: int


def unified_diff(before: str, after: str, *, old_name: str, new_name: str) -> Diff:
    """Equal texts give an empty diff."""
    old, new = _rows_with_newlines(before), _rows_with_newlines(after)
    changes = _diff_changes(old, new)
    if not changes:
        return Diff(text="", added=0, removed=0)
    lines = [f"--- {old_name}\n", f"+++ {new_name}\n"]
    for group in _group_changes(changes):
        lines.extend(_format_hunk(old, new, group))
    return Diff(
        text="".join(lines),
        added=sum(d - c for _, _, c, d in changes),
        removed=sum(b - a for a, b, _, _ in changes),
    )


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


def _diff_changes(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    most = min(len(old), len(new))
    head = next((i for i in range(most) if old[i] != new[i]), most)
    tail = next((i for i in range(most - head) if old[-1 - i] != new[-1 - i]), most - head)
    left, right = old[head : len(old) - tail], new[head : len(new) - tail]
    if not left and not right:
        return []
    if len(left) * len(right) > _COMPARED_PAIRS:
        return [(head, head + len(left), head, head + len(right))]
    codes = SequenceMatcher(None, left, right).get_opcodes()
    return [(head + a, head + b, head + c, head + d) for tag, a, b, c, d in codes if tag != "equal"]


def _group_changes(changes: list[Change]) -> Iterator[list[Change]]:
    """Changes with touching context belong to one hunk."""
    group = [changes[0]]
    for change in changes[1:]:
        if change[0] - group[-1][1] > 2 * CONTEXT_ROWS:
            yield group
            group = []
        group.append(change)
    yield group


def _format_hunk(old: Sequence[str], new: Sequence[str], group: list[Change]) -> Iterator[str]:
    before = min(CONTEXT_ROWS, group[0][0])
    after = min(CONTEXT_ROWS, len(old) - group[-1][1])
    a, c = group[0][0] - before, group[0][2] - before
    b, d = group[-1][1] + after, group[-1][3] + after
    yield f"@@ -{_format_range(a, b)} +{_format_range(c, d)} @@\n"
    at = a
    for start, stop, new_start, new_stop in group:
        yield from (_format_row(" ", row) for row in old[at:start])
        yield from (_format_row("-", row) for row in old[start:stop])
        yield from (_format_row("+", row) for row in new[new_start:new_stop])
        at = stop
    yield from (_format_row(" ", row) for row in old[at:b])


def _format_row(mark: str, row: str) -> str:
    return mark + row if row.endswith("\n") else f"{mark}{row}\n\\ No newline at end of file\n"


def _format_range(start: int, stop: int) -> str:
    count = stop - start
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"
