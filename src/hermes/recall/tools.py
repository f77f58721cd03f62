"""The session_search tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, cast, get_args

from hermes.codec.values import JsonObject, replace
from hermes.core.effects import Effect, ReadHistory
from hermes.core.errors import NotFound, ToolError
from hermes.core.tools import PathContext, ToolContext, ToolDisplay, ToolOutput, tool
from hermes.core.world import Clock, SystemClock
from hermes.journal.index.filters import Period, named_in
from hermes.journal.index.source import Role
from hermes.recall.archive import (
    MessageRef,
    PastSessions,
    Recap,
    RecapModel,
    SearchFilter,
    SearchResults,
    recap_sessions,
)
from hermes.recall.results import Sort, format_messages, format_results, format_sessions

BROWSED = 15
MOST_SESSIONS = 30
MOST_AROUND = 20
NOTHING = "Nothing was found. Try other words, or omit role_filter and when."
CLOSED = "Past sessions are not available here."


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
        """Returns the model for recaps, or None."""
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
    window: Annotated[int, "Around it"] = 5,
    limit: Annotated[int, "Sessions at most"] = 20,
    role_filter: Annotated[str, "Of user, assistant, tool"] = "user,assistant",
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
            info, said = await recall.archive.messages_around(session_id, n, around)
            shown = [MessageRef(info.id, one.n, one.role) for one in said]
            origins = await recall.archive.origins(shown)
            text = format_messages(info, said, n)
            return _mark_origins(text, {"session_id": info.id}, origins)
        return ToolOutput.text(format_sessions(await recall.archive.recent(BROWSED)))
    except NotFound as error:
        raise ToolError(str(error)) from error


def _clamp(wanted: int, most: int) -> int:
    """Clamps a value instead of failing."""
    return max(1, min(wanted, most))


async def _show(
    archive: PastSessions,
    found: SearchResults,
    query: str,
    most: int,
    sort: Sort,
    model: RecapModel | None,
) -> ToolOutput:
    """Formats the results; without a `model` there are no recaps."""
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
    """Marks the output with the untrusted origins in it."""
    output = ToolOutput.text(text, details=details)
    return replace(output, origin=", ".join(origins)) if origins else output


def _roles(text: str) -> tuple[Role, ...] | None:
    """Parses roles; None (all) when none is known."""
    named = {name.strip().lower() for name in text.split(",")}
    known = tuple(cast(Role, role) for role in get_args(Role) if role in named)
    return known or None


def _period(when: str, now: float) -> Period | None:
    if not when.strip():
        return None
    first, between, last = when.partition("..")
    found, end = named_in(first, now), named_in(last, now) if between else None
    if found is None or (between and end is None):
        raise ToolError(f"“{when}” is not a known time; write it like “May 2023”.")
    return found if end is None else Period(since=found.since, until=end.until)
