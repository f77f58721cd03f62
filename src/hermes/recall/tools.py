"""The tool that finds what was said in earlier sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple, cast, get_args

from hermes.codec.values import JsonObject, replace
from hermes.core.effects import Effect, ReadHistory
from hermes.core.errors import NotFound, ToolError
from hermes.core.tools import Place, ToolContext, ToolDisplay, ToolOutput, tool
from hermes.core.world import Clock, SystemClock
from hermes.journal.index.periods import Period, named_in
from hermes.journal.index.texts import Role
from hermes.recall import page
from hermes.recall.archive import Archive, Found, Shown, Wanted
from hermes.recall.recap import Recap, Teller, recaps

BROWSED = 15
MOST_SESSIONS = 30
MOST_AROUND = 20
NOTHING = "Nothing was found. Try other words for it, or leave out role_filter and when."
CLOSED = "Past sessions cannot be searched here."


class Recall:
    """What the tool of one session works with; the program gives it the session's archive, and
    whoever tells recaps as things are now. `summarize` is whether they are wanted where a call
    does not say."""

    def __init__(
        self,
        archive: Archive | None = None,
        clock: Clock | None = None,
        *,
        teller: Callable[[], Teller] | None = None,
        summarize: bool = False,
    ) -> None:
        self.archive = archive
        self.clock = clock or SystemClock()
        self.teller = teller
        self.summarize = summarize

    def telling(self, summarize: bool | None) -> Teller | None:
        """Who recaps for a call that says this about it; None for nobody."""
        wanted = self.summarize if summarize is None else summarize
        return self.teller() if wanted and self.teller is not None else None


class Asked(NamedTuple):
    """A search as it was asked for; without a `teller` nothing is recapped."""

    query: str
    limit: int
    sort: page.Sort
    teller: Teller | None


def _looks_back(_place: Place, arguments: JsonObject) -> tuple[Effect, ...]:
    return (ReadHistory(query=arguments["query"]),)


@tool(
    effects=_looks_back,
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
    """Find what was said in past sessions. Ask it before you say you do not know something of the
    past, and again in other words if the answer is missing."""
    recall = ctx.kept(Recall)
    if recall.archive is None:
        raise ToolError(CLOSED)
    try:
        if query.strip():
            wanted = Wanted(
                roles=_roles(role_filter),
                period=_period(when, recall.clock.now()),
                session_id=session_id,
                include_current=include_current,
            )
            found = await recall.archive.discover(query, wanted)
            asked = Asked(query, _within(limit, MOST_SESSIONS), sort, recall.telling(summarize))
            return await _discovered(recall.archive, found, asked)
        if session_id:
            return await _scrolled(
                recall.archive, session_id, max(0, around_message_id), _within(window, MOST_AROUND)
            )
        return ToolOutput.text(page.browsed(await recall.archive.recent(BROWSED)))
    except NotFound as error:
        raise ToolError(str(error)) from error


def _within(wanted: int, most: int) -> int:
    """A model that asks for too much gets what there is, not an error."""
    return max(1, min(wanted, most))


async def _discovered(archive: Archive, found: Found, asked: Asked) -> ToolOutput:
    if not found.passages:
        return ToolOutput.text(NOTHING)
    sessions = list(dict.fromkeys(one.session_id for one in found.passages))[: asked.limit]
    told: dict[str, Recap] = {}
    if asked.teller is not None:
        told = await recaps(archive, asked.teller, asked.query, found, sessions)
    text, shown = page.findings(found, most_sessions=asked.limit, sort=asked.sort, recaps=told)
    read = [one for recap in told.values() for one in recap.shown]
    return _told(text, {"sessions": sessions}, await archive.origins([*shown, *read]))


async def _scrolled(archive: Archive, session_id: str, n: int, window: int) -> ToolOutput:
    info, said = await archive.around(session_id, n, window)
    origins = await archive.origins([Shown(info.id, one.n, one.role) for one in said])
    return _told(page.scrolled(info, said, n), {"session_id": info.id}, origins)


def _told(text: str, details: JsonObject, origins: tuple[str, ...]) -> ToolOutput:
    """Strangers' words stay theirs, however often they are told."""
    output = ToolOutput.text(text, details=details)
    return replace(output, origin=", ".join(origins)) if origins else output


def _roles(text: str) -> tuple[Role, ...] | None:
    """Those of the named roles that there are; all when none is known."""
    named = {name.strip().lower() for name in text.split(",")}
    known = tuple(cast(Role, role) for role in get_args(Role) if role in named)
    return known or None


def _period(when: str, now: float) -> Period | None:
    if not when.strip():
        return None
    first, between, last = when.partition("..")
    found, end = named_in(first, now), named_in(last, now) if between else None
    if found is None or (between and end is None):
        raise ToolError(f"“{when}” is no time that is understood; write it like “May 2023”.")
    return found if end is None else Period(since=found.since, until=end.until)
