"""The session_search tool, and its results as plain lines within a size limit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal, cast, get_args

from hermes.codec.values import JsonObject, replace
from hermes.core.effects import Effect, ReadHistory
from hermes.core.errors import NotFound, ToolError
from hermes.core.tools import PathContext, ToolContext, ToolDisplay, ToolOutput, tool
from hermes.core.world import Clock, SystemClock
from hermes.journal.export import ExportedMessage
from hermes.journal.index.filters import Period, named_in
from hermes.journal.index.search import RecallPassage
from hermes.journal.index.source import Role
from hermes.journal.listing import SessionInfo
from hermes.recall.archive import (
    MessageRef,
    PastSessions,
    Recap,
    RecapModel,
    SearchFilter,
    SearchResults,
    recap_sessions,
)

BROWSED = 15
MOST_SESSIONS = 30
MOST_AROUND = 20
NOTHING = "Nothing was found. Try other words, or omit role_filter and when."
CLOSED = "Past sessions are not available here."

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
    """Group messages by session in order; recaps precede the messages of their session. Return the
    text and the messages shown."""
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


def format_messages(info: SessionInfo, messages: Sequence[ExportedMessage], n: int) -> str:
    """Format consecutive messages; mark the requested one."""
    head = f"[{info.id}] {_format_time(info.started_at)}{_format_title(info.title)}"
    lines = [("*" if one.n == n else "") + _format_message(one) for one in messages]
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
    """Select the best passages that fit on a page, by session."""
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


def _format_message(message: ExportedMessage) -> str:
    text = " ".join(message.text.split())
    if len(text) > _LONGEST_LINE:
        text = text[:_LONGEST_LINE] + "…"
    return f"{message.n}{SIGNS.get(message.role, '#')} {text}"


def _format_title(title: str) -> str:
    text = " ".join(title.split())
    return f" “{text[: _TITLE - 1]}…”" if len(text) > _TITLE else f" “{text}”" if text else ""


def _format_time(at: float, form: str = "%a %Y-%m-%d %H:%M") -> str:
    return datetime.fromtimestamp(at, UTC).strftime(form)


def _bytes(line: str) -> int:
    return len(line.encode("utf-8", "replace")) + 1


class RecallService:
    """State of session_search in one session. `make_recap_model` returns the model for recaps;
    `summarize` is the default for calls that do not specify it."""

    def __init__(
        self,
        archive: PastSessions | None = None,
        clock: Clock | None = None,
        *,
        make_recap_model: Callable[[], RecapModel] | None = None,
        summarize: bool = False,
    ) -> None:
        self.archive = archive
        self.clock = clock or SystemClock()
        self.make_recap_model = make_recap_model
        self.summarize = summarize

    def recap_model(self, summarize: bool | None) -> RecapModel | None:
        """Return the model for recaps, or None."""
        wanted = self.summarize if summarize is None else summarize
        return self.make_recap_model() if wanted and self.make_recap_model else None


def _effects(_place: PathContext, arguments: JsonObject) -> tuple[Effect, ...]:
    return (ReadHistory(query=arguments["query"]),)


@tool(
    effects=_effects,
    repeat="safe",
    toolset="session_search",
    kind="search",
    display=ToolDisplay(icon="🔍", verb="recall"),
)
async def session_search(
    ctx: ToolContext,
    query: Annotated[str, "A question or words; omit to list recent sessions"] = "",
    session_id: Annotated[str, "Only in this session; without query: scroll in it"] = "",
    around_message_id: Annotated[int, "Message to scroll to"] = 0,
    window: Annotated[int, "Messages around it"] = 5,
    limit: Annotated[int, "Max. sessions"] = 20,
    role_filter: Annotated[str, "Roles: user, assistant, tool"] = "user,assistant",
    when: Annotated[str, "'May 2023', 'last week', '2024-02-01..2024-03-15'"] = "",
    sort: Literal["relevance", "newest", "oldest"] = "relevance",
    include_current: Annotated[bool, "Also this conversation"] = False,
    summarize: Annotated[bool | None, "Also recap the best three"] = None,
) -> ToolOutput:
    """Search past sessions. Use it before you say that you do not know something about the
    past, and again with other words if the answer is missing."""
    recall = ctx.service(RecallService)
    if recall.archive is None:
        raise ToolError(CLOSED)
    try:
        if query.strip():
            wanted = SearchFilter(
                roles=_roles(role_filter),
                period=_period(when, recall.clock.now()),
                session_id=session_id,
                include_current=include_current,
            )
            found = await recall.archive.discover(query, wanted)
            most = _clamp(limit, MOST_SESSIONS)
            model = recall.recap_model(summarize)
            return await _show(recall.archive, found, query, most, sort, model)
        if session_id:
            n, around = max(0, around_message_id), _clamp(window, MOST_AROUND)
            info, messages = await recall.archive.messages_around(session_id, n, around)
            shown = [MessageRef(info.id, one.n, one.role) for one in messages]
            origins = await recall.archive.origins(shown)
            text = format_messages(info, messages, n)
            return _mark_origins(text, {"session_id": info.id}, origins)
        return ToolOutput.text(format_sessions(await recall.archive.recent(BROWSED)))
    except NotFound as error:
        raise ToolError(str(error)) from error


def _clamp(wanted: int, most: int) -> int:
    """Clamp a value instead of failing."""
    return max(1, min(wanted, most))


async def _show(
    archive: PastSessions,
    found: SearchResults,
    query: str,
    most: int,
    sort: Sort,
    model: RecapModel | None,
) -> ToolOutput:
    """Format the results; without a `model` there are no recaps."""
    if not found.passages:
        return ToolOutput.text(NOTHING)
    sessions = list(dict.fromkeys(one.session_id for one in found.passages))[:most]
    recaps: dict[str, Recap] = {}
    if model is not None:
        recaps = await recap_sessions(archive, model, query, found, sessions)
    text, shown = format_results(found, most_sessions=most, sort=sort, recaps=recaps)
    read = [one for recap in recaps.values() for one in recap.shown]
    return _mark_origins(text, {"sessions": sessions}, await archive.origins([*shown, *read]))


def _mark_origins(text: str, details: JsonObject, origins: tuple[str, ...]) -> ToolOutput:
    """Mark the output with the origins in it that the person did not write."""
    output = ToolOutput.text(text, details=details)
    return replace(output, origin=", ".join(origins)) if origins else output


def _roles(text: str) -> frozenset[Role] | None:
    """Parse roles; None (all) when none is known."""
    named = {name.strip().lower() for name in text.split(",")}
    known = frozenset(cast(Role, role) for role in get_args(Role) if role in named)
    return known or None


def _period(when: str, now: float) -> Period | None:
    if not when.strip():
        return None
    first, between, last = when.partition("..")
    found, end = named_in(first, now), named_in(last, now) if between else None
    if found is None or (between and end is None):
        raise ToolError(f"“{when}” is not a known time; write it like “May 2023”.")
    return found if end is None else Period(since=found.since, until=end.until)
