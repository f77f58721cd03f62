"""Executes requests with the same `Idempotency-Key` once."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from sqlite3 import Connection

from hermes.codec.json import decode, encode
from hermes.codec.values import Value, replace
from hermes.surfaces.api.http import HttpError, HttpRequest, HttpResponse
from hermes.surfaces.api.server_context import ServerContext

LONGEST = 255
REPLAYED = ((b"idempotency-replayed", b"true"),)


class IdempotencyClaim(Value):
    """The claim to execute a request. `run_id` is that of an earlier attempt without a response;
    the journal holds its progress."""

    key: str = ""
    fingerprint: str = ""
    run_id: str = ""


class _Row(Value):
    fingerprint: str
    run_id: str
    answer: HttpResponse | None = None


IdempotentWork = Callable[[IdempotencyClaim], Awaitable[HttpResponse]]


async def run_once(house: ServerContext, call: HttpRequest, work: IdempotentWork) -> HttpResponse:
    """Execute the work, or return its stored response. A concurrent duplicate waits for the first.
    Server errors are not stored, so a retry executes the work again."""
    ticket = await claim_key(house, call)
    if not ticket.key:
        return await work(ticket)
    if (flying := house.in_flight.get(ticket.key)) is not None:
        return _mark_replayed(await asyncio.shield(flying))
    row = await _row(house, ticket.key)
    if row is not None and row.answer is not None:
        return _mark_replayed(row.answer)
    if (flying := house.in_flight.get(ticket.key)) is not None:
        return _mark_replayed(await asyncio.shield(flying))
    flying = asyncio.get_running_loop().create_future()
    house.in_flight[ticket.key] = flying
    try:
        given = await work(ticket)
        await _store_response(house, ticket, given)
        flying.set_result(given)
        return given
    except BaseException as error:
        told = (
            error if isinstance(error, Exception) else HttpError(503, "interrupted", "Try again.")
        )
        flying.set_exception(told)
        # Mark the exception as retrieved: there may be no waiter.
        flying.exception()
        raise
    finally:
        del house.in_flight[ticket.key]


async def claim_key(house: ServerContext, call: HttpRequest) -> IdempotencyClaim:
    """HttpError when the key was used for another request."""
    given = call.headers.get("idempotency-key")
    if given is None:
        return IdempotencyClaim()
    if not 1 <= len(given) <= LONGEST or not all("!" <= letter <= "~" for letter in given):
        words = f"An idempotency key has 1 to {LONGEST} printable ASCII characters."
        raise HttpError(400, "invalid_idempotency_key", words, param="Idempotency-Key")
    key = _digest(call.client.name, call.route, given)
    session = f"{call.headers.get('x-hermes-session-id', '')}\0{call.session_key}"
    fingerprint = _digest(call.path, session, call.raw.decode("utf-8", "replace"))
    row = await _row(house, key)
    if row is not None and row.fingerprint != fingerprint:
        words = "This idempotency key was used for another request."
        raise HttpError(409, "idempotency_key_conflict", words, param="Idempotency-Key")
    return IdempotencyClaim(key=key, fingerprint=fingerprint, run_id=row.run_id if row else "")


async def store_run(house: ServerContext, ticket: IdempotencyClaim, run_id: str) -> None:
    """Store the run id before the run starts, so that a retry finds it."""
    if not ticket.key or ticket.run_id:
        return
    row = (ticket.key, ticket.fingerprint, run_id, 0, b"", "", house.app.run.world.clock.now())

    def work(db: Connection) -> str:
        db.execute("INSERT OR IGNORE INTO idempotency VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        query = "SELECT run_id FROM idempotency WHERE key = ?"
        return str(db.execute(query, (ticket.key,)).fetchone()[0])

    await house.store.run(work, durable=True)


async def _store_response(
    house: ServerContext, ticket: IdempotencyClaim, given: HttpResponse
) -> None:
    headers = encode([[name.decode(), value.decode()] for name, value in given.headers]).decode()
    values = (given.status, given.body, headers, ticket.key)
    await house.store.change(
        "UPDATE idempotency SET status = ?, body = ?, headers = ? WHERE key = ?", [values]
    )


async def _row(house: ServerContext, key: str) -> _Row | None:
    def work(db: Connection) -> _Row | None:
        query = "SELECT fingerprint, run_id, status, body, headers FROM idempotency WHERE key = ?"
        row = db.execute(query, (key,)).fetchone()
        if row is None:
            return None
        fingerprint, run_id, status, body, headers = row
        if not status:
            return _Row(fingerprint=fingerprint, run_id=run_id)
        pairs = decode(list[tuple[str, str]], headers)
        kept = tuple((name.encode(), value.encode()) for name, value in pairs)
        given = HttpResponse(status=status, body=body, headers=kept)
        return _Row(fingerprint=fingerprint, run_id=run_id, answer=given)

    return await house.store.run(work)


def _mark_replayed(given: HttpResponse) -> HttpResponse:
    return replace(given, headers=(*given.headers, *REPLAYED))


def _digest(*parts: str) -> str:
    return hashlib.sha256(encode(parts)).hexdigest()
