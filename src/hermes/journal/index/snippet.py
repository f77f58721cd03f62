"""Snippets: the part of a message around the best matches."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes.journal.index.rank import Span
from hermes.journal.index.words import origins

BEFORE, AFTER = ">>>", "<<<"
_WIDTH = 160
_SPACE = re.compile(r"\s+")


def snippet(text: str, spans: Sequence[Span]) -> str:
    """About 160 characters of the text on one line, with marked matches. The spans refer to the
    folded text."""
    places = _in_original(text, _apart(spans))
    start, end = _window(text, places)
    shown: list[str] = []
    at = start
    for first, last, _ in places:
        if first >= at and last <= end:
            shown += [text[at:first], BEFORE, text[first:last], AFTER]
            at = last
    shown.append(text[at:end])
    line = _SPACE.sub(" ", "".join(shown)).strip()
    return ("…" if start > 0 else "") + line + ("…" if end < len(text) else "")


def excerpt(text: str, spans: Sequence[Span], width: int) -> str:
    """The text on one line; of a longer one the best excerpt of about `width` characters, without
    marks."""
    if len(text) <= width:
        return _SPACE.sub(" ", text).strip()
    start, end = _window(text, _in_original(text, _apart(spans)), width)
    line = _SPACE.sub(" ", text[start:end]).strip()
    return ("…" if start > 0 else "") + line + ("…" if end < len(text) else "")


def _apart(spans: Sequence[Span]) -> list[Span]:
    """In order; of overlapping spans, the one that begins first and is longest."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not kept or span[0] >= kept[-1][1]:
            kept.append(span)
    return kept


def _in_original(text: str, spans: list[Span]) -> list[Span]:
    places = [place for start, end, _ in spans for place in (start, end)]
    found = iter(origins(text, places))
    return [(next(found), next(found), weight) for _, _, weight in spans]


def _window(text: str, places: list[Span], width: int = _WIDTH) -> tuple[int, int]:
    """The excerpt with the most valuable matches in its middle, cut between words."""
    if not places:
        return 0, _cut(text, min(len(text), width), forward=False)
    stretches = [_stretch(places, first, width) for first in range(len(places))]
    best = max(stretches, key=_worth)
    first, last = best[0][0], best[-1][1]
    spare = max(0, width - (last - first))
    end = min(len(text), max(last, first - spare // 2 + width))
    start = max(0, min(first, end - width))
    return (
        min(first, _cut(text, start, forward=True)),
        max(last, _cut(text, end, forward=False)),
    )


def _stretch(places: list[Span], first: int, width: int) -> list[Span]:
    """The matches from one on that fit into a snippet."""
    end = places[first][0] + width
    return [places[first], *(place for place in places[first + 1 :] if place[1] <= end)]


def _worth(stretch: list[Span]) -> float:
    """Different words count more than one repeated word: a repeated weight is halved each time."""
    worth, before, factor = 0.0, -1.0, 1.0
    for weight in sorted((weight for _, _, weight in stretch), reverse=True):
        factor = factor / 2 if weight == before else 1.0
        worth += weight * factor
        before = weight
    return worth


def _cut(text: str, at: int, *, forward: bool) -> int:
    """A position near `at` where a word ends, or `at` itself."""
    if at <= 0 or at >= len(text):
        return at
    if forward:
        space = _SPACE.search(text, at - 1, at + 20)
        return space.end() if space else at
    head = text[max(0, at - 20) : at + 1]
    spaces = list(_SPACE.finditer(head))
    return at + 1 - len(head) + spaces[-1].start() if spaces else at
