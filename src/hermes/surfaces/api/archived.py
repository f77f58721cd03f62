"""Which sessions clients see in a list: those of a kind, found by words, but for those put away."""

from __future__ import annotations

from sqlite3 import Connection

from hermes.app.library import SessionFilter, SessionInfo
from hermes.codec.values import replace
from hermes.core.errors import NotFound
from hermes.surfaces.api.house import House

# Messages that are looked through for sessions in which something was said.
MOST_HITS = 200


async def all_of(house: House) -> frozenset[str]:
    """Sessions that were put away: still there, but in no list."""
    query = "SELECT session_id FROM archived"
    rows = await house.store.run(lambda db: db.execute(query).fetchall())
    return frozenset(row[0] for row in rows)


async def put(house: House, session_id: str, *, away: bool) -> None:
    statement = (
        "INSERT OR IGNORE INTO archived VALUES (?)"
        if away
        else "DELETE FROM archived WHERE session_id = ?"
    )

    def work(db: Connection) -> None:
        db.execute(statement, (session_id,))

    await house.store.run(work, durable=True)


class Listed:
    """Sessions for a list, those last used first."""

    def __init__(
        self, house: House, wanted: SessionFilter, away: frozenset[str], *, only_archived: bool
    ) -> None:
        self._library = house.app.library
        self._wanted = wanted
        self._away = away
        self._only_archived = only_archived

    async def recent(self, most: int) -> list[SessionInfo]:
        if self._only_archived:
            return self._shown([await self._one(id) for id in self._away])
        rows = await self._library.recent(self._wanted, limit=most + len(self._away))
        return self._shown(list(rows))[:most]

    async def found(self, query: str) -> list[SessionInfo]:
        """By a part of the title, or by what was said."""
        titled = await self._library.recent(replace(self._wanted, title=query), limit=None)
        by_id = {info.id: info for info in titled}
        for hit in await self._library.search(query, limit=MOST_HITS):
            if hit.session_id not in by_id and (info := await self._one(hit.session_id)):
                by_id[info.id] = info
        return self._shown(list(by_id.values()))

    async def _one(self, session_id: str) -> SessionInfo | None:
        try:
            return await self._library.info(session_id)
        except NotFound:
            return None

    def _shown(self, found: list[SessionInfo | None] | list[SessionInfo]) -> list[SessionInfo]:
        wanted = self._wanted
        kept = [
            info
            for info in found
            if info is not None
            and (info.id in self._away) == self._only_archived
            and wanted.source in (None, info.source)
            and info.source not in wanted.exclude_sources
        ]
        return sorted(kept, key=lambda info: info.last_at, reverse=True)
