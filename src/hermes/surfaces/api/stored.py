"""Stores responses, so that clients can read and continue them after a restart."""

from __future__ import annotations

from sqlite3 import Connection

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.surfaces.api.house import ServerContext
from hermes.surfaces.api.refusals import HttpError
from hermes.surfaces.api.threads import HistoryPoint


async def store_response(
    house: ServerContext, whose: str, response: JsonObject, spot: HistoryPoint, conversation: str
) -> None:
    """Durable when it returns. Evicts the least recently used responses."""
    now, most = house.app.world.clock.now(), house.settings.stored_responses
    place = (spot.session_id, spot.n, spot.messages)
    row = (response["id"], whose, *place, encode(response), now, now)

    def work(db: Connection) -> None:
        db.execute("INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        if conversation:
            named = (whose, conversation, response["id"])
            db.execute("INSERT OR REPLACE INTO conversations VALUES (?, ?, ?)", named)
        old = "SELECT id FROM responses ORDER BY accessed_at DESC LIMIT -1 OFFSET ?"
        for (id,) in db.execute(old, (most,)).fetchall():
            _remove(db, id)

    await house.store.run(work, durable=True)


async def load_response(house: ServerContext, whose: str, response_id: str) -> bytes:
    now = house.app.world.clock.now()

    def work(db: Connection) -> bytes | None:
        query = "SELECT data FROM responses WHERE id = ? AND client = ?"
        row = db.execute(query, (response_id, whose)).fetchone()
        db.execute("UPDATE responses SET accessed_at = ? WHERE id = ?", (now, response_id))
        return row[0] if row else None

    found = await house.store.run(work)
    if found is None:
        raise response_not_found("response_id")
    return found


async def response_point(house: ServerContext, whose: str, response_id: str) -> HistoryPoint:
    """The history point of a response; HttpError 404 when it is not stored."""
    now = house.app.world.clock.now()

    def work(db: Connection) -> HistoryPoint | None:
        query = "SELECT session_id, n, messages FROM responses WHERE id = ? AND client = ?"
        row = db.execute(query, (response_id, whose)).fetchone()
        db.execute("UPDATE responses SET accessed_at = ? WHERE id = ?", (now, response_id))
        return HistoryPoint(session_id=row[0], n=row[1], messages=row[2]) if row else None

    found = await house.store.run(work)
    if found is None:
        raise response_not_found("previous_response_id")
    return found


async def latest_response(house: ServerContext, whose: str, conversation: str) -> str:
    """The id of the latest response of a conversation, "" when it is new."""
    query = "SELECT response_id FROM conversations WHERE client = ? AND name = ?"
    row = await house.store.run(lambda db: db.execute(query, (whose, conversation)).fetchone())
    return row[0] if row else ""


async def remove_response(house: ServerContext, whose: str, response_id: str) -> None:
    def work(db: Connection) -> bool:
        query = "SELECT 1 FROM responses WHERE id = ? AND client = ?"
        if db.execute(query, (response_id, whose)).fetchone() is None:
            return False
        _remove(db, response_id)
        return True

    if not await house.store.run(work, durable=True):
        raise response_not_found("response_id")


def _remove(db: Connection, response_id: str) -> None:
    db.execute("DELETE FROM responses WHERE id = ?", (response_id,))
    db.execute("DELETE FROM conversations WHERE response_id = ?", (response_id,))


def response_not_found(param: str) -> HttpError:
    return HttpError(404, "response_not_found", "There is no such response.", param=param)
