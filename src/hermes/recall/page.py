"""What was found, as plain lines that a model reads: the best evidence first, within a size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from hermes.journal.index.search import Passage
from hermes.journal.listing import SessionInfo
from hermes.journal.transfer import Said
from hermes.recall.archive import Found, Shown
from hermes.recall.recap import Recap

PAGE_BYTES = 6_300
"""Of a page with findings; a little more for what is said below them."""

SIGNS = {"user": ">", "assistant": "<", "tool": "#", "system": "#"}
LEGEND = (
    "N> user, N< assistant, N# tool; more around a line: "
    "session_search(session_id=ID, around_message_id=N)"
)
RECAPPED = "= a model's recap of the whole session; the lines below it are what was really said"
_LEAST_LEFT = 40
_LEAST_SCORE = 0.04
_TITLE = 60
_PREVIEW = 100
_LONGEST_LINE = 1_500

Sort = Literal["relevance", "newest", "oldest"]


def findings(
    found: Found,
    *,
    most_sessions: int,
    sort: Sort = "relevance",
    recaps: Mapping[str, Recap] = {},
) -> tuple[str, list[Shown]]:
    """Messages grouped by session, in the order in which they were said; and which they are. What
    recaps there are stand above the messages of their session."""
    groups = _chosen(found, most_sessions)
    lines: list[str] = []
    for session_id in _ordered(groups, sort):
        some = sorted(groups[session_id], key=lambda one: one.n)
        lines.append(_head(found, some[0]))
        if (recap := recaps.get(session_id)) and recap.text:
            lines.append(f"= {recap.text}")
        lines += map(_line, some)
    shown = [Shown(one.session_id, one.n, one.role) for some in groups.values() for one in some]
    return "\n".join((*lines, LEGEND, *_about(recaps))), shown


def _about(recaps: Mapping[str, Recap]) -> Iterable[str]:
    if any(recap.text for recap in recaps.values()):
        yield RECAPPED
    for why in dict.fromkeys(recap.failed for recap in recaps.values() if recap.failed):
        yield f"No recap: {why}"


def scrolled(info: SessionInfo, said: Sequence[Said], n: int) -> str:
    """Messages as they follow each other, the wanted one marked."""
    head = f"[{info.id}] {_moment(info.started_at)}{_titled(info.title)}"
    lines = [_said(one, marked=one.n == n) for one in said]
    if not lines:
        return f"{head}\nThere is nothing at that place."
    last = f"{info.message_count} messages in all, up to {info.last_n}"
    return "\n".join((head, *lines, last))


def browsed(sessions: Iterable[SessionInfo]) -> str:
    lines = [
        f"[{info.id}] {_day(info.last_at)} {info.message_count} messages"
        f"{_titled(info.title or info.preview[:_PREVIEW])}"
        for info in sessions
    ]
    return "\n".join(lines) if lines else "There are no other sessions yet."


def _chosen(found: Found, most_sessions: int) -> dict[str, list[Passage]]:
    """The best passages that fit on a page, by session."""
    groups: defaultdict[str, list[Passage]] = defaultdict(list)
    left = PAGE_BYTES - len(LEGEND)
    best = found.passages[0].score if found.passages else 0.0
    for passage in found.passages:
        if passage.score < best * _LEAST_SCORE or left < _LEAST_LEFT:
            break
        known = passage.session_id in groups
        if not known and len(groups) == most_sessions:
            continue
        size = _bytes(_line(passage)) + (0 if known else _bytes(_head(found, passage)))
        if size <= left:
            groups[passage.session_id].append(passage)
            left -= size
    return dict(groups)


def _ordered(groups: dict[str, list[Passage]], sort: Sort) -> list[str]:
    """Groups are made in the order of their best passages."""
    if sort == "relevance":
        return list(groups)
    return sorted(groups, key=lambda id: groups[id][0].at, reverse=sort == "newest")


def _head(found: Found, passage: Passage) -> str:
    known = found.sessions.get(passage.session_id)
    title = _titled(known.title) if known else ""
    source = " cron" if known and known.source == "cron" else ""
    return f"[{passage.session_id}] {_moment(passage.at)}{source}{title}"


def _line(passage: Passage) -> str:
    return f"{passage.n}{SIGNS[passage.role]} {passage.text}"


def _said(said: Said, *, marked: bool) -> str:
    text = " ".join(said.text.split())
    if len(text) > _LONGEST_LINE:
        text = text[:_LONGEST_LINE] + "…"
    return f"{'*' if marked else ''}{said.n}{SIGNS.get(said.role, '#')} {text}"


def _titled(title: str) -> str:
    text = " ".join(title.split())
    return f" “{text[: _TITLE - 1]}…”" if len(text) > _TITLE else f" “{text}”" if text else ""


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%a %Y-%m-%d %H:%M")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def _bytes(line: str) -> int:
    return len(line.encode("utf-8", "replace")) + 1
