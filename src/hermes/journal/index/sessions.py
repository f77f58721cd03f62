"""Weights messages by the sessions that they belong to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from hermes.journal.index.rank import ScoredMessage

_SESSION_SAYS = 0.2
_OTHERS_SAY = 0.3
_OTHERS = 5
_AGAIN = 0.6


def with_sessions(found: Sequence[ScoredMessage]) -> list[ScoredMessage]:
    """A message counts more when its session has other matches."""
    worth = session_worth(found)
    return [
        one._replace(score=one.score + _SESSION_SAYS * worth[one.row.session_id]) for one in found
    ]


def session_worth(found: Sequence[ScoredMessage]) -> dict[str, float]:
    """The best message of each session, and a part of the next ones."""
    scores: defaultdict[str, list[float]] = defaultdict(list)
    for one in found:
        scores[one.row.session_id].append(one.score)
    worth: dict[str, float] = {}
    for session, some in scores.items():
        best, *others = sorted(some, reverse=True)
        more = sum(score / 2**place for place, score in enumerate(others[:_OTHERS]))
        worth[session] = best + _OTHERS_SAY * more
    return worth


def diversify(found: Sequence[ScoredMessage]) -> list[ScoredMessage]:
    """Order the results so that one session does not hide all others: each further message of a
    session counts less than the one before it."""
    seen: defaultdict[str, int] = defaultdict(int)
    ranked: list[tuple[float, int, ScoredMessage]] = []
    for place, one in enumerate(found):
        factor = _AGAIN ** seen[one.row.session_id]
        seen[one.row.session_id] += 1
        ranked.append((-one.score * factor, place, one))
    return [one for _, _, one in sorted(ranked, key=lambda entry: entry[:2])]
