"""Finds the session of a client that sends its whole history with each request."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from sqlite3 import Connection

from hermes.codec.json import encode
from hermes.codec.values import Value
from hermes.core.errors import NotFound
from hermes.surfaces.api.content import ClientMessage
from hermes.surfaces.api.house import ServerContext
from hermes.surfaces.api.run import Run


class HistoryPoint(Value):
    """A point in a session: after record `n`, with its number of messages."""

    session_id: str
    n: int
    messages: int


def history_hash(client: str, system: str, said: Sequence[ClientMessage]) -> str:
    """A hash of the history that ignores surrounding white space."""
    facts = [client, system.strip()]
    facts += [f"{each.role}\0{each.text.strip()}\0{' '.join(each.urls)}" for each in said]
    return hashlib.sha256(encode(facts)).hexdigest()


async def find_point(house: ServerContext, hash: str) -> HistoryPoint | None:
    def work(db: Connection) -> HistoryPoint | None:
        query = "SELECT session_id, n, messages FROM threads WHERE hash = ?"
        row = db.execute(query, (hash,)).fetchone()
        return HistoryPoint(session_id=row[0], n=row[1], messages=row[2]) if row else None

    return await house.store.run(work)


async def store_point(house: ServerContext, hashes: Sequence[str], spot: HistoryPoint) -> None:
    now = house.app.world.clock.now()
    rows = [(hash, spot.session_id, spot.n, spot.messages, now) for hash in dict.fromkeys(hashes)]
    await house.store.change("INSERT OR REPLACE INTO threads VALUES (?, ?, ?, ?, ?)", rows)


async def current_point(house: ServerContext, session_id: str, n: int) -> HistoryPoint:
    """The current point of a session."""
    info = await house.app.archive.info(session_id)
    return HistoryPoint(session_id=session_id, n=n, messages=info.message_count)


def point_of_run(run: Run) -> HistoryPoint:
    """The same for a session that holds only this run; later records are not counted."""
    return HistoryPoint(session_id=run.session_id, n=run.last_n, messages=run.message_total)


async def continue_from(house: ServerContext, spot: HistoryPoint) -> str:
    """The session to continue: the same one, or a fork if it has grown since. NotFound when it was
    deleted. It is claimed for the caller, who must start a run."""
    if house.pool.claim(spot.session_id):
        try:
            info = await house.app.archive.info(spot.session_id)
        except NotFound:
            house.pool.release_claim(spot.session_id)
            raise
        if info.message_count == spot.messages:
            return spot.session_id
        house.pool.release_claim(spot.session_id)
    return await house.app.archive.fork(spot.session_id, at=spot.n)
