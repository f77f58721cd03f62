"""Finds the session of a client that sends its whole history with each request."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from sqlite3 import Connection

from hermes.codec.json import encode
from hermes.codec.values import Value
from hermes.core.errors import NotFound
from hermes.surfaces.api.content import Spoken
from hermes.surfaces.api.house import House
from hermes.surfaces.api.run import Run


class Spot(Value):
    """A point in a session: after record `n`, with its number of messages."""

    session_id: str
    n: int
    messages: int


def thread(client: str, system: str, said: Sequence[Spoken]) -> str:
    """A hash of the history that ignores surrounding white space."""
    facts = [client, system.strip()]
    facts += [f"{each.role}\0{each.text.strip()}\0{' '.join(each.urls)}" for each in said]
    return hashlib.sha256(encode(facts)).hexdigest()


async def find_spot(house: House, hash: str) -> Spot | None:
    def work(db: Connection) -> Spot | None:
        query = "SELECT session_id, n, messages FROM threads WHERE hash = ?"
        row = db.execute(query, (hash,)).fetchone()
        return Spot(session_id=row[0], n=row[1], messages=row[2]) if row else None

    return await house.store.run(work)


async def keep_spot(house: House, hashes: Sequence[str], spot: Spot) -> None:
    now = house.app.world.clock.now()
    rows = [(hash, spot.session_id, spot.n, spot.messages, now) for hash in dict.fromkeys(hashes)]
    await house.store.change("INSERT OR REPLACE INTO threads VALUES (?, ?, ?, ?, ?)", rows)


async def spot_of(house: House, session_id: str, n: int) -> Spot:
    """The current point of a session."""
    info = await house.app.library.info(session_id)
    return Spot(session_id=session_id, n=n, messages=info.message_count)


def spot_in(run: Run) -> Spot:
    """The same for a session that holds only this run; later records are not counted."""
    return Spot(session_id=run.session_id, n=run.last_n, messages=run.said)


async def go_on(house: House, spot: Spot) -> str:
    """The session to continue: the same one, or a fork if it has grown since. NotFound when it was
    deleted. It is claimed for the caller, who must start a run."""
    if house.desk.claim(spot.session_id):
        try:
            info = await house.app.library.info(spot.session_id)
        except NotFound:
            house.desk.unclaim(spot.session_id)
            raise
        if info.message_count == spot.messages:
            return spot.session_id
        house.desk.unclaim(spot.session_id)
    return await house.app.library.fork(spot.session_id, at=spot.n)
