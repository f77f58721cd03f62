"""Executes work with the same idempotency key only once, even after a crash."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from sqlite3 import Connection

from hermes.codec.json import encode
from hermes.codec.values import Value
from hermes.core.errors import AdmissionRefused, IdempotencyConflict
from hermes.core.world import Clock
from hermes.hosting.store import HostingStore

KEY_SECONDS = 86_400.0


class IdempotencyClaim(Value):
    """The claim to execute a request. `run_id` is that of an earlier attempt without a response;
    the journal holds its progress. A request without a key has an empty claim."""

    key: str = ""
    fingerprint: str = ""
    run_id: str = ""


IdempotentWork = Callable[[IdempotencyClaim], Awaitable[bytes]]


class Idempotency:
    """Stores the responses to requests with an idempotency key, as opaque bytes, for a day."""

    def __init__(self, store: HostingStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._in_flight: dict[str, asyncio.Future[bytes]] = {}

    async def claim(self, owner: str, route: str, key: str, fingerprint: str) -> IdempotencyClaim:
        """Claim a key, which is distinct per owner and route. Raises IdempotencyConflict when the
        key was used for a request with another fingerprint."""
        key = digest(owner, route, key)
        known, run_id, _ = await self._row(key) or (fingerprint, "", None)
        if known != fingerprint:
            raise IdempotencyConflict(
                "This idempotency key was used for another request; choose a new key."
            )
        return IdempotencyClaim(key=key, fingerprint=fingerprint, run_id=run_id)

    async def reserve_run(self, claim: IdempotencyClaim, run_id: str) -> str:
        """Store the run id before the run starts, so that a retry finds it. Returns the id to use:
        that of the first request with this key."""
        if not claim.key or claim.run_id:
            return claim.run_id or run_id
        row = (claim.key, claim.fingerprint, run_id, self._clock.now())

        def work(db: Connection) -> str:
            db.execute("INSERT OR IGNORE INTO idempotency_keys VALUES (?, ?, ?, NULL, ?)", row)
            query = "SELECT run_id FROM idempotency_keys WHERE key = ?"
            return str(db.execute(query, (claim.key,)).fetchone()[0])

        return await self._store.run(work, durable=True)

    async def once(self, claim: IdempotencyClaim, work: IdempotentWork) -> tuple[bytes, bool]:
        """The response of the work, and whether an earlier request got it. A concurrent duplicate
        waits for the first. Errors are not stored, so a retry executes the work again."""
        if (flying := self._in_flight.get(claim.key)) is not None:
            return await asyncio.shield(flying), True
        row = await self._row(claim.key)
        if row is not None and (stored := row[2]) is not None:
            return stored, True
        if (flying := self._in_flight.get(claim.key)) is not None:
            return await asyncio.shield(flying), True
        flying = asyncio.get_running_loop().create_future()
        self._in_flight[claim.key] = flying
        try:
            response = await work(claim)
            await self._store.change(
                "UPDATE idempotency_keys SET response = ? WHERE key = ?", [(response, claim.key)]
            )
            flying.set_result(response)
            return response, False
        except BaseException as error:
            if not isinstance(error, Exception):
                message = "The request was interrupted; send it again."
                error = AdmissionRefused(message, retry_after=1.0, is_draining=True)
            flying.set_exception(error)
            # Mark the exception as retrieved: there may be no waiter.
            flying.exception()
            raise
        finally:
            del self._in_flight[claim.key]

    async def delete_expired(self) -> None:
        oldest = self._clock.now() - KEY_SECONDS
        await self._store.change("DELETE FROM idempotency_keys WHERE at < ?", [(oldest,)])

    async def _row(self, key: str) -> tuple[str, str, bytes | None] | None:
        """Fingerprint, run id and response."""
        query = "SELECT fingerprint, run_id, response FROM idempotency_keys WHERE key = ?"
        row: tuple[str, str, bytes | None] | None = await self._store.run(
            lambda db: db.execute(query, (key,)).fetchone()
        )
        return row


def digest(*parts: str) -> str:
    return hashlib.sha256(encode(parts)).hexdigest()
