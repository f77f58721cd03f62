"""Lists and searches sessions for clients, with or without archived ones."""

from __future__ import annotations

from hermes.codec.values import replace
from hermes.core.errors import NotFound
from hermes.journal.archive import SessionFilter, SessionInfo
from hermes.surfaces.api.house import ServerContext

# Search hits that are grouped into sessions.
MOST_HITS = 200


class SessionListing:
    """Sessions, last used first. `archived` selects only archived sessions or only others; by
    default a list omits archived sessions and a search includes them."""

    def __init__(
        self, house: ServerContext, wanted: SessionFilter, *, archived: bool | None
    ) -> None:
        self._library = house.app.archive
        self._wanted = wanted
        self._archived = archived

    async def recent(self, most: int) -> list[SessionInfo]:
        wanted = replace(self._wanted, archived=bool(self._archived))
        return list(await self._library.recent(wanted, limit=most))

    async def search(self, query: str) -> list[SessionInfo]:
        """Match the title or the messages."""
        wanted = replace(self._wanted, title=query, archived=self._archived)
        by_id = {info.id: info for info in await self._library.recent(wanted, limit=None)}
        for hit in await self._library.search(query, limit=MOST_HITS):
            if hit.session_id not in by_id and (info := await self._one(hit.session_id)):
                by_id[info.id] = info
        return sorted(by_id.values(), key=lambda info: info.last_at, reverse=True)

    async def _one(self, session_id: str) -> SessionInfo | None:
        try:
            info = await self._library.info(session_id)
        except NotFound:
            return None
        return info if self._is_wanted(info) else None

    def _is_wanted(self, info: SessionInfo) -> bool:
        wanted = self._wanted
        return (
            self._archived in (None, info.archived)
            and wanted.source in (None, info.source)
            and info.source not in wanted.exclude_sources
        )
