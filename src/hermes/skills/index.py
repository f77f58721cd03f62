"""Builds the skill index of the system prompt within a fixed size."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from hermes.skills.conditions import SkillEnvironment, is_indexed
from hermes.skills.scan import SkillEntry

HEAD = (
    "Before a task, load each skill that fits it with skill_view and follow it. Fix a skill that "
    "proved wrong with skill_manage; after hard or corrected work, save one."
)
OPENING = "<available_skills>"
CLOSING = "</available_skills>"
MORE = "skills_list shows all."
LEAST = len(HEAD) + len(OPENING) + len(CLOSING) + len(MORE) + 60
LONGEST_LINE = 60
NO_CATEGORY = "general"
# Approximates one token: a short word, three digits or a sign; a hyphen joins the next word.
_PIECE = re.compile(
    r"[A-Za-z]{1,9}|[0-9]{1,3}|[\u00c0-\u1fff]{1,3}|-(?![A-Za-z])|[^\sA-Za-z0-9\u00c0-\u1fff-]|\n"
)
_CHARS_PER_PIECE = 4

Recent = Callable[[], Sequence[str]]


def index_text(
    entries: Sequence[SkillEntry],
    here: SkillEnvironment,
    *,
    most_chars: int,
    recent: Recent = tuple,
) -> str:
    """Returns the index, at most `most_chars` long in characters, bytes or tokens; "" when
    nothing is shown or fits. `recent` names skills by last use: they come first when space is
    short."""
    shown = [entry for entry in entries if is_indexed(entry, here)]
    if not shown or most_chars < LEAST:
        return ""
    whole = _text(shown, {entry.name for entry in shown}, hidden=0)
    if _size(whole) <= most_chars:
        return whole
    ranks = {name: rank for rank, name in enumerate(recent())}
    by_use = sorted(_interleave(shown), key=lambda entry: ranks.get(entry.name, len(ranks)))
    names = _text(shown, set(), hidden=0)
    if _size(names) <= most_chars:
        return _text(shown, _fitting_descriptions(by_use, most_chars - _size(names)), hidden=0)
    return _names_that_fit(by_use, most_chars)


def _interleave(entries: Sequence[SkillEntry]) -> list[SkillEntry]:
    """Interleaves the categories, so that every kind of task stays listed."""
    seen: dict[str, int] = {}
    places: list[int] = []
    for entry in entries:
        places.append(seen.get(entry.category, 0))
        seen[entry.category] = places[-1] + 1
    return [entries[n] for n in sorted(range(len(entries)), key=places.__getitem__)]


def _fitting_descriptions(by_use: Sequence[SkillEntry], space: int) -> set[str]:
    """Returns the skills whose descriptions fit into the remaining space."""
    found: set[str] = set()
    for entry in by_use:
        # Its name moves from the list to its own line.
        space -= _size(_line(entry)) + _CHARS_PER_PIECE
        if space < 0:
            break
        found.add(entry.name)
    return found


def _names_that_fit(by_use: Sequence[SkillEntry], most_chars: int) -> str:
    """Lists as many names as fit, and counts the rest."""
    low, high = 0, len(by_use)
    while low < high:
        middle = (low + high + 1) // 2
        if _size(_text(by_use[:middle], set(), hidden=len(by_use) - middle)) <= most_chars:
            low = middle
        else:
            high = middle - 1
    return _text(by_use[:low], set(), hidden=len(by_use) - low)


def _size(text: str) -> int:
    """Returns the size in characters of plain English; digits, signs and other scripts weigh
    more."""
    pieces = sum(1 for _ in _PIECE.finditer(text))
    return max(len(text.encode()), pieces * _CHARS_PER_PIECE)


def _text(entries: Sequence[SkillEntry], described: set[str], *, hidden: int) -> str:
    lines = [HEAD, OPENING]
    categories: dict[str, list[SkillEntry]] = {}
    for entry in sorted(entries, key=lambda each: (each.category, each.name)):
        categories.setdefault(entry.category or NO_CATEGORY, []).append(entry)
    for category, inner in categories.items():
        bare = ", ".join(entry.name for entry in inner if entry.name not in described)
        lines.append(f"{category}: {bare}".rstrip())
        lines += [_line(entry) for entry in inner if entry.name in described]
    if hidden:
        lines.append(f"+{hidden} more; {MORE}")
    return "\n".join((*lines, CLOSING))


def _line(entry: SkillEntry) -> str:
    return index_line(entry.name, entry.skill.description)


def index_line(name: str, description: str) -> str:
    """Formats one skill for the index."""
    # A description must not close the list.
    words = description.replace("<", "‹").replace(">", "›")
    short = words if len(words) <= LONGEST_LINE else words[: LONGEST_LINE - 1].rstrip() + "…"
    return f"- {name}: {short}"
