"""Access to past sessions: search, read around a message, list. Applies visibility rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from hermes.codec.values import Value
from hermes.core.effects import Principal
from hermes.core.errors import NotFound
from hermes.journal import listing, sessions
from hermes.journal.index.known import KnownSession, facts_of, kin_of, origins_of, sessions_of
from hermes.journal.index.periods import Period
from hermes.journal.index.search import RecallPassage, SearchIndex
from hermes.journal.index.texts import Role
from hermes.journal.journal import SqliteJournal
from hermes.journal.listing import SessionFilter, SessionInfo
from hermes.journal.transfer import ExportedMessage, conversation_of

HIDDEN_SOURCES = ("subagent", "tool")
_CRON = "cron"
_CRON_COUNTS = 0.5
_MOST_PASSAGES = 96
_RECORDS_PER_MESSAGE = 8
# The journal knows only the role of other people, which cannot tell one guest from another. The
# owner sees owner and system sessions only.
_HIDDEN_FROM_OWNER = ("member", "guest")


class SearchFilter(Value):
    """Filters of a search; None means no filter."""

    roles: tuple[Role, ...] | None = ("user", "assistant")
    period: Period | None = None
    session_id: str = ""
    include_current: bool = False


class SearchResults(Value):
    """Passages, best first, and facts about their sessions."""

    passages: tuple[RecallPassage, ...]
    sessions: dict[str, KnownSession]


class MessageRef(NamedTuple):
    """Identifies a message that is shown."""

    session_id: str
    n: int
    role: str


class PastSessions:
    """The sessions that `session_id` of `principal` may see. `strangers` returns the untrusted
    ones among origins."""

    def __init__(
        self,
        journal: SqliteJournal,
        index: SearchIndex,
        *,
        session_id: str,
        principal: Principal = "owner",
        strangers: Callable[[Iterable[str]], tuple[str, ...]] = tuple,
    ) -> None:
        self._journal = journal
        self._index = index
        self._session_id = session_id
        self._principal = principal
        self._strangers = strangers

    async def discover(self, query: str, wanted: SearchFilter) -> SearchResults:
        """Searches; scheduled sessions rank after others."""
        scope = await self._scope(wanted)
        if scope is None:
            return SearchResults(passages=(), sessions={})
        inside, outside = scope
        period = wanted.period
        passages = await self._index.recall(
            query,
            limit=_MOST_PASSAGES,
            sessions=inside,
            exclude=outside,
            roles=wanted.roles,
            since=period.since if period else None,
            until=period.until if period and period.until != float("inf") else None,
        )
        if period:
            passages = tuple(one for one in passages if period.holds(one.at))
        ids = list(dict.fromkeys(one.session_id for one in passages))
        known = await self._journal.reading(lambda db: facts_of(db, ids))
        return SearchResults(passages=_with_schedules_last(passages, known), sessions=known)

    async def messages_around(
        self, session_id: str, n: int, window: int
    ) -> tuple[SessionInfo, list[ExportedMessage]]:
        """Returns up to `window` messages before and after a record, or the start without one;
        NotFound."""
        info = await self._readable(session_id)
        after = max(0, n - window * _RECORDS_PER_MESSAGE - 1)
        records = await self._journal.read(info.id, after=after)
        said = [one for one in conversation_of(records) if one.text]
        at = next((place for place, one in enumerate(said) if one.n >= n), len(said))
        return info, said[max(0, at - window) : at + window + 1]

    async def messages_of(self, session_id: str) -> list[ExportedMessage]:
        """Returns all messages of a session; NotFound."""
        info = await self._readable(session_id)
        return [one for one in conversation_of(await self._journal.read(info.id)) if one.text]

    async def origins(self, shown: Sequence[MessageRef]) -> tuple[str, ...]:
        """Returns untrusted origins of the shown messages, or in view when they were written."""
        ids = {one.session_id for one in shown}
        known = await self._journal.reading(lambda db: origins_of(db, ids))
        found = {
            origin
            for one in shown
            for n, origin in known[one.session_id]
            # An assistant may repeat what it read before.
            if n == one.n or (one.role == "assistant" and n < one.n)
        }
        return self._strangers(found)

    async def recent(self, limit: int) -> tuple[SessionInfo, ...]:
        """Returns the last used sessions, without the current one and its relatives."""
        if self._principal != "owner":
            return ()
        hidden = await self._hidden(include_current=False)
        newest = await listing.list_sessions(
            self._journal,
            SessionFilter(exclude_sources=HIDDEN_SOURCES),
            limit=limit + len(hidden),
        )
        return tuple(info for info in newest if info.id not in hidden)[:limit]

    async def _scope(
        self, wanted: SearchFilter
    ) -> tuple[frozenset[str] | None, frozenset[str]] | None:
        """Returns sessions to search (None for all) and to exclude; None for nothing."""
        if wanted.session_id:
            info = await self._readable(wanted.session_id)
            return frozenset({info.id}), frozenset()
        if self._principal != "owner":
            own = await self._relatives() if wanted.include_current else frozenset()
            return (own, frozenset()) if own else None
        return None, await self._hidden(include_current=wanted.include_current)

    async def _readable(self, session_id: str) -> SessionInfo:
        """Returns a readable session; a session may always read itself and its relatives."""
        found = await sessions.find(self._journal, session_id)
        info = await listing.session_info(self._journal, found)
        kin = await self._relatives()
        hidden = info is None or (
            info.principal in _HIDDEN_FROM_OWNER if self._principal == "owner" else True
        )
        if info is None or (hidden and found not in kin):
            raise NotFound(f"There is no readable session “{session_id}”.")
        return info

    async def _hidden(self, *, include_current: bool) -> frozenset[str]:
        hidden = await self._journal.reading(
            lambda db: sessions_of(db, sources=HIDDEN_SOURCES, principals=_HIDDEN_FROM_OWNER)
        )
        return hidden if include_current else hidden | await self._relatives()

    async def _relatives(self) -> frozenset[str]:
        return await self._journal.reading(lambda db: kin_of(db, self._session_id))


def _with_schedules_last(
    passages: Sequence[RecallPassage], known: dict[str, KnownSession]
) -> tuple[RecallPassage, ...]:
    scheduled = {id for id, facts in known.items() if facts.source == _CRON}
    if not scheduled:
        return tuple(passages)
    weighed = [
        msgspec.structs.replace(one, score=one.score * _CRON_COUNTS)
        if one.session_id in scheduled
        else one
        for one in passages
    ]
    return tuple(sorted(weighed, key=lambda one: -one.score))
