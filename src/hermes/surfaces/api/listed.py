"""Which sessions clients see in a list: those of a kind, found by words, with or without those that
were put away."""

from __future__ import annotations

from hermes.codec.values import replace
from hermes.core.errors import NotFound
from hermes.journal.archive import SessionFilter, SessionInfo
from hermes.surfaces.api.house import House

# Messages that are looked through for sessions in which something was said.
MOST_HITS = 200


class Listed:
    """Sessions for a list, those last used first. `archived` is whether only those that were put
    away are wanted or only the others; where nothing is said, a list has the others and a search
    finds all."""

    def __init__(self, house: House, wanted: SessionFilter, *, archived: bool | None) -> None:
        self._library = house.app.library
        self._wanted = wanted
        self._archived = archived

    async def recent(self, most: int) -> list[SessionInfo]:
        wanted = replace(self._wanted, archived=bool(self._archived))
        return list(await self._library.recent(wanted, limit=most))

    async def found(self, query: str) -> list[SessionInfo]:
        """By a part of the title, or by what was said."""
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
