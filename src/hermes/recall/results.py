"""Formats search results as plain lines within a size limit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from hermes.journal.export import ExportedMessage
from hermes.journal.index.search import RecallPassage
from hermes.journal.listing import SessionInfo
from hermes.recall.archive import MessageRef, Recap, SearchResults

PAGE_BYTES = 6_300
"""Size limit of the results, without the legend."""

SIGNS = {"user": ">", "assistant": "<", "tool": "#", "system": "#"}
LEGEND = (
    "N> user, N< assistant, N# tool; context of a line: "
    "session_search(session_id=ID, around_message_id=N)"
)
RECAPPED = "= a model's recap of the whole session; the lines below it are verbatim"
_LEAST_LEFT = 40
_LEAST_SCORE = 0.04
_TITLE = 60
_PREVIEW = 100
_LONGEST_LINE = 1_500

Sort = Literal["relevance", "newest", "oldest"]


def format_results(
    found: SearchResults,
    *,
    most_sessions: int,
    sort: Sort = "relevance",
    recaps: Mapping[str, Recap] = {},
) -> tuple[str, list[MessageRef]]:
    """Groups messages by session in order; recaps precede the messages of their session. Returns
    the text and the messages shown."""
    groups = _select(found, most_sessions)
    lines: list[str] = []
    # Groups have the order of relevance already.
    sessions = list(groups)
    if sort != "relevance":
        sessions.sort(key=lambda id: groups[id][0].at, reverse=sort == "newest")
    for session_id in sessions:
        some = sorted(groups[session_id], key=lambda one: one.n)
        lines.append(_head(found, some[0]))
        if (recap := recaps.get(session_id)) and recap.text:
            lines.append(f"= {recap.text}")
        lines += map(_line, some)
    shown = [
        MessageRef(one.session_id, one.n, one.role) for some in groups.values() for one in some
    ]
    lines.append(LEGEND)
    if any(recap.text for recap in recaps.values()):
        lines.append(RECAPPED)
    failures = dict.fromkeys(recap.failed for recap in recaps.values() if recap.failed)
    lines += [f"No recap: {why}" for why in failures]
    return "\n".join(lines), shown


def format_messages(info: SessionInfo, said: Sequence[ExportedMessage], n: int) -> str:
    """Formats consecutive messages; marks the requested one."""
    head = f"[{info.id}] {_format_time(info.started_at)}{_format_title(info.title)}"
    lines = [("*" if one.n == n else "") + _format_message(one) for one in said]
    if not lines:
        return f"{head}\nThere is no message at that position."
    last = f"{info.message_count} messages in all, up to {info.last_n}"
    return "\n".join((head, *lines, last))


def format_sessions(sessions: Iterable[SessionInfo]) -> str:
    lines = [
        f"[{info.id}] {_format_time(info.last_at, '%Y-%m-%d')} {info.message_count} messages"
        f"{_format_title(info.title or info.preview[:_PREVIEW])}"
        for info in sessions
    ]
    return "\n".join(lines) if lines else "There are no other sessions yet."


def _select(found: SearchResults, most_sessions: int) -> dict[str, list[RecallPassage]]:
    """Selects the best passages that fit on a page, by session."""
    groups: defaultdict[str, list[RecallPassage]] = defaultdict(list)
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


def _head(found: SearchResults, passage: RecallPassage) -> str:
    known = found.sessions.get(passage.session_id)
    title = _format_title(known.title) if known else ""
    source = " cron" if known and known.source == "cron" else ""
    return f"[{passage.session_id}] {_format_time(passage.at)}{source}{title}"


def _line(passage: RecallPassage) -> str:
    return f"{passage.n}{SIGNS[passage.role]} {passage.text}"


def _format_message(said: ExportedMessage) -> str:
    text = " ".join(said.text.split())
    if len(text) > _LONGEST_LINE:
        text = text[:_LONGEST_LINE] + "…"
    return f"{said.n}{SIGNS.get(said.role, '#')} {text}"


def _format_title(title: str) -> str:
    text = " ".join(title.split())
    return f" “{text[: _TITLE - 1]}…”" if len(text) > _TITLE else f" “{text}”" if text else ""


def _format_time(at: float, form: str = "%a %Y-%m-%d %H:%M") -> str:
    return datetime.fromtimestamp(at, UTC).strftime(form)


def _bytes(line: str) -> int:
    return len(line.encode("utf-8", "replace")) + 1
