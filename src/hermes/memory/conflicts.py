"""Finds entries that contradict each other: the same subject with a different value."""

from __future__ import annotations

import re
from collections.abc import Iterable

_STATEMENT = (
    r"^(?P<what>[^\n.;]{3,80}?)\s*(?:\b(?:is|are|was|lives? in|works? (?:at|for)|runs? on"
    r"|listens? on|is (?:called|named|at|in|on))\b|[:=])\s*(?P<value>[^\n]{1,60}?)\.?$"
)
_SMALL = frozenset({"the", "a", "an", "my", "our", "their", "his", "her", "user's", "users"})
_SINGLE = frozenset(
    "name port birthday address email phone timezone version language editor url host hostname "
    "city country employer job model branch shell password username surname age database".split()
)
_NAMED = r"\d|[A-Z]|[\"'`“]"
_NAMING = ("called", "named")
_LEADING = frozenset({"in", "on", "at", "called", "named", "for", "by", "with", "from", "to"})


def find_contradiction(text: str, others: Iterable[str]) -> str:
    """Returns the first other entry that the text contradicts, or "". Only short statements about
    the same subject count, whose values are names or numbers, or whose subject can have one value
    only: a false alarm costs a model call and may block a valid entry."""
    statement = _parse_statement(text)
    if statement is None:
        return ""
    what, link, value = statement
    for other in others:
        existing = _parse_statement(other)
        if existing is None or existing[0] != what or existing[1] != link:
            continue
        differs = existing[2].casefold() != value.casefold()
        if differs and (link in _NAMING or _excludes(what, value, existing[2])):
            return other
    return ""


def _parse_statement(text: str) -> tuple[tuple[str, ...], str, str] | None:
    """Parses a statement into its subject, its preposition and its value."""
    found = re.match(_STATEMENT, " ".join(text.split()), re.IGNORECASE)
    if found is None:
        return None
    words = re.findall(r"[\w'’-]+", found["what"].casefold().replace("’", "'"))
    what = tuple(word for word in words if word not in _SMALL)
    value = found["value"].strip()
    first, _, rest = value.partition(" ")
    link = first.casefold() if first.casefold() in _LEADING and rest else ""
    value = rest if link else value
    return (what, link, value) if what and len(value.split()) <= 4 else None


def _excludes(what: tuple[str, ...], one: str, other: str) -> bool:
    if what[-1] in _SINGLE or re.sub(r"\d+", "#", one) == re.sub(r"\d+", "#", other):
        return True
    return len(what) >= 2 and all(re.search(_NAMED, value) for value in (one, other))
