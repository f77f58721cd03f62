"""Results of a search: weighted by session, with snippets and facts of their sessions."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple

from hermes.journal.index.rank import ScoredMessage, Span
from hermes.journal.index.terms import origins

_SESSION_SAYS = 0.2
_OTHERS_SAY = 0.3
_OTHERS = 5
_AGAIN = 0.6


def with_sessions(found: Sequence[ScoredMessage]) -> list[ScoredMessage]:
    """Raise the score of messages whose session has other matches."""
    worth = session_worth(found)
    return [
        one._replace(score=one.score + _SESSION_SAYS * worth[one.row.session_id]) for one in found
    ]


def session_worth(found: Sequence[ScoredMessage]) -> dict[str, float]:
    """Return the best message of each session, and a part of the next ones."""
    scores: defaultdict[str, list[float]] = defaultdict(list)
    for one in found:
        scores[one.row.session_id].append(one.score)
    worth: dict[str, float] = {}
    for session, some in scores.items():
        best, *others = sorted(some, reverse=True)
        more = sum(score / 2**index for index, score in enumerate(others[:_OTHERS]))
        worth[session] = best + _OTHERS_SAY * more
    return worth


def diversify(found: Sequence[ScoredMessage]) -> list[ScoredMessage]:
    """Order the results so that one session does not hide all others: each further message of a
    session counts less than the one before it."""
    seen: defaultdict[str, int] = defaultdict(int)
    ranked: list[tuple[float, int, ScoredMessage]] = []
    for index, one in enumerate(found):
        factor = _AGAIN ** seen[one.row.session_id]
        seen[one.row.session_id] += 1
        ranked.append((-one.score * factor, index, one))
    return [one for _, _, one in sorted(ranked, key=lambda entry: entry[:2])]


BEFORE, AFTER = ">>>", "<<<"
_WIDTH = 160
_SPACE = re.compile(r"\s+")


def snippet(text: str, spans: Sequence[Span]) -> str:
    """Return about 160 characters of the text on one line, with marked matches. The spans refer to
    the folded text."""
    places = _in_original(text, spans)
    start, end = _window(text, places, _WIDTH)
    shown: list[str] = []
    at = start
    for first, last, _ in places:
        if first >= at and last <= end:
            shown += [text[at:first], BEFORE, text[first:last], AFTER]
            at = last
    shown.append(text[at:end])
    return _on_one_line("".join(shown), cut_before=start > 0, cut_after=end < len(text))


def excerpt(text: str, spans: Sequence[Span], width: int) -> str:
    """Return the text on one line; of a longer one the best excerpt of about `width` characters,
    without marks."""
    start, end = 0, len(text)
    if end > width:
        start, end = _window(text, _in_original(text, spans), width)
    return _on_one_line(text[start:end], cut_before=start > 0, cut_after=end < len(text))


def _on_one_line(text: str, *, cut_before: bool, cut_after: bool) -> str:
    return "…" * cut_before + _SPACE.sub(" ", text).strip() + "…" * cut_after


def _in_original(text: str, spans: Sequence[Span]) -> list[Span]:
    """Return the spans in the text itself, in order; of overlapping ones, the one that begins first
    and is longest."""
    apart: list[Span] = []
    for span in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not apart or span[0] >= apart[-1][1]:
            apart.append(span)
    found = iter(origins(text, [position for span in apart for position in span[:2]]))
    return [(next(found), next(found), weight) for _, _, weight in apart]


def _window(text: str, places: list[Span], width: int) -> tuple[int, int]:
    """Return the excerpt with the most valuable matches in its middle, cut between words."""
    if not places:
        return 0, _cut(text, min(len(text), width), forward=False)
    stretches = [
        [p for p in places[first:] if p[1] <= start + width or p is places[first]]
        for first, (start, _, _) in enumerate(places)
    ]
    best = max(stretches, key=_worth)
    first, last = best[0][0], best[-1][1]
    spare = max(0, width - (last - first))
    end = min(len(text), max(last, first - spare // 2 + width))
    start = max(0, min(first, end - width))
    return (
        min(first, _cut(text, start, forward=True)),
        max(last, _cut(text, end, forward=False)),
    )


def _worth(stretch: list[Span]) -> float:
    """Return the value of matches. Different words count more than one repeated word: a repeated
    weight is halved each time."""
    worth, before, factor = 0.0, -1.0, 1.0
    for weight in sorted((weight for _, _, weight in stretch), reverse=True):
        factor = factor / 2 if weight == before else 1.0
        worth += weight * factor
        before = weight
    return worth


def _cut(text: str, at: int, *, forward: bool) -> int:
    """Return a position near `at` where a word ends, or `at` itself."""
    if at <= 0 or at >= len(text):
        return at
    if forward:
        space = _SPACE.search(text, at - 1, at + 20)
        return space.end() if space else at
    head = text[max(0, at - 20) : at + 1]
    spaces = list(_SPACE.finditer(head))
    return at + 1 - len(head) + spaces[-1].start() if spaces else at


_AT_ONCE = 500
_ORIGINS = {"tool_finished": "$.result.origin", "message_received": "$.message.origin"}


class KnownSession(NamedTuple):
    id: str
    title: str
    source: str
    principal: str
    started_at: float


def sessions_of(
    db: sqlite3.Connection, *, sources: Collection[str], principals: Collection[str]
) -> frozenset[str]:
    """Return the ids of sessions from any of these sources or principals."""
    sql = (
        "SELECT s.id FROM summaries AS m JOIN sessions AS s USING (session)"
        f" WHERE m.source IN ({', '.join('?' * len(sources))})"
        f" OR m.principal IN ({', '.join('?' * len(principals))})"
    )
    return frozenset(id for (id,) in db.execute(sql, (*sources, *principals)))


def facts_of(db: sqlite3.Connection, ids: Sequence[str]) -> dict[str, KnownSession]:
    """Return the facts of these sessions, without unknown ones."""
    found: dict[str, KnownSession] = {}
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        sql = (
            "SELECT s.id, m.title, m.source, m.principal, m.started_at"
            " FROM sessions AS s JOIN summaries AS m USING (session)"
            f" WHERE s.id IN ({', '.join('?' * len(some))})"
        )
        found |= {row[0]: KnownSession(*row) for row in db.execute(sql, tuple(some))}
    return found


def origins_of(db: sqlite3.Connection, ids: Collection[str]) -> dict[str, list[tuple[int, str]]]:
    """Return, by session, the records with text from third parties, and their origins, in order."""
    # The usual origin is not stored, so only records with another one are decoded.
    sql = (
        "SELECT n, json_extract(body, ?) FROM events"
        " WHERE session = (SELECT session FROM sessions WHERE id = ?) AND kind = ?"
        """ AND instr(body, '"origin":"') > 0 AND json_extract(body, ?) IS NOT NULL"""
    )
    found: dict[str, list[tuple[int, str]]] = {}
    for id in ids:
        rows: list[tuple[int, str]] = []
        for kind, path in _ORIGINS.items():
            rows += db.execute(sql, (path, id, kind, path))
        found[id] = sorted(rows)
    return found


def kin_of(db: sqlite3.Connection, session_id: str) -> frozenset[str]:
    """Return the session with all its ancestors and all forks of these."""
    sql = (
        "WITH RECURSIVE above(session, parent) AS ("
        " SELECT session, parent FROM sessions WHERE id = ?"
        " UNION SELECT s.session, s.parent FROM sessions AS s"
        " JOIN above ON s.session = above.parent"
        "), kin(session) AS ("
        " SELECT session FROM above"
        " UNION SELECT s.session FROM sessions AS s JOIN kin ON s.parent = kin.session)"
        " SELECT id FROM kin JOIN sessions USING (session)"
    )
    return frozenset(id for (id,) in db.execute(sql, (session_id,)))
