"""The tables of the API server in `api.db`, and stored responses by `Idempotency-Key`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from hermes.codec.json import decode, encode
from hermes.hosting.idempotency import IdempotencyClaim, digest
from hermes.hosting.store import HostingStore
from hermes.surfaces.api.http import ApiRequest, ApiResponse, HttpError
from hermes.surfaces.api.server_context import ServerContext

SCHEMA = """
CREATE TABLE IF NOT EXISTS threads (
    hash TEXT PRIMARY KEY, session_id TEXT, n INTEGER, messages INTEGER, at REAL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS threads_at ON threads (at);
CREATE TABLE IF NOT EXISTS responses (
    id TEXT PRIMARY KEY, client TEXT, session_id TEXT, n INTEGER, messages INTEGER,
    data BLOB, created_at REAL, accessed_at REAL
);
CREATE INDEX IF NOT EXISTS responses_accessed ON responses (accessed_at);
CREATE TABLE IF NOT EXISTS conversations (
    client TEXT, name TEXT, response_id TEXT, PRIMARY KEY (client, name)
) WITHOUT ROWID;
"""
# Earlier versions stored runs without their requests, and responses in another form. A retry of a
# request from before gets the response of the same run from the journal.
MIGRATION = """
CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, at REAL) WITHOUT ROWID;
INSERT OR IGNORE INTO pending_runs SELECT id, NULL, at FROM runs;
DROP TABLE runs;
CREATE TABLE IF NOT EXISTS idempotency (
    key TEXT PRIMARY KEY, fingerprint TEXT, run_id TEXT, status INTEGER, body BLOB, headers TEXT,
    at REAL
) WITHOUT ROWID;
INSERT OR IGNORE INTO idempotency_keys SELECT key, fingerprint, run_id, NULL, at FROM idempotency;
DROP TABLE idempotency;
"""
THREAD_SECONDS = 90 * 86_400.0


def open_store(root: Path) -> HostingStore:
    return HostingStore(root / "api.db", SCHEMA + MIGRATION)


async def delete_expired(server: ServerContext) -> None:
    """Delete expired threads and idempotency keys."""
    oldest = server.app.run.world.clock.now() - THREAD_SECONDS
    await server.store.change("DELETE FROM threads WHERE at < ?", [(oldest,)])
    await server.idempotency.delete_expired()


MAX_KEY_CHARS = 255
REPLAYED = (b"idempotency-replayed", b"true")


async def run_once(
    server: ServerContext,
    call: ApiRequest,
    work: Callable[[IdempotencyClaim], Awaitable[ApiResponse]],
) -> ApiResponse:
    """Execute the work, or return its stored response. Errors are not stored."""
    claim = await claim_key(server, call)
    if not claim.key:
        return await work(claim)

    async def encoded(claim: IdempotencyClaim) -> bytes:
        """A line with status and headers, then the body."""
        response = await work(claim)
        headers = [[name.decode(), value.decode()] for name, value in response.headers]
        return encode([response.status, headers]) + b"\n" + response.body

    data, is_replayed = await server.idempotency.once(claim, encoded)
    head, _, body = data.partition(b"\n")
    status, pairs = decode(tuple[int, list[tuple[str, str]]], head)
    headers = tuple((name.encode(), value.encode()) for name, value in pairs)
    return ApiResponse(
        status=status, body=body, headers=(*headers, REPLAYED) if is_replayed else headers
    )


async def claim_key(server: ServerContext, call: ApiRequest) -> IdempotencyClaim:
    """HttpError for an invalid key; IdempotencyConflict."""
    given = call.headers.get("idempotency-key")
    if given is None:
        return IdempotencyClaim()
    if not 1 <= len(given) <= MAX_KEY_CHARS or not all("!" <= letter <= "~" for letter in given):
        words = f"An idempotency key has 1 to {MAX_KEY_CHARS} printable ASCII characters."
        raise HttpError(400, "invalid_idempotency_key", words, param="Idempotency-Key")
    session = f"{call.headers.get('x-hermes-session-id', '')}\0{call.session_key}"
    fingerprint = digest(call.path, session, call.raw.decode("utf-8", "replace"))
    return await server.idempotency.claim(call.client.name, call.route, given, fingerprint)
