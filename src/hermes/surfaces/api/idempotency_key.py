"""The `Idempotency-Key` header: repeated requests get the stored response."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hermes.codec.json import decode, encode
from hermes.hosting.idempotency import IdempotencyClaim, digest
from hermes.surfaces.api.http import HttpError, HttpRequest, HttpResponse
from hermes.surfaces.api.server_context import ServerContext

MAX_KEY_CHARS = 255
REPLAYED = (b"idempotency-replayed", b"true")


async def run_once(
    house: ServerContext,
    call: HttpRequest,
    work: Callable[[IdempotencyClaim], Awaitable[HttpResponse]],
) -> HttpResponse:
    """Execute the work, or return its stored response. Errors are not stored."""
    claim = await claim_key(house, call)
    if not claim.key:
        return await work(claim)

    async def encoded(claim: IdempotencyClaim) -> bytes:
        return _encode(await work(claim))

    data, is_replayed = await house.idempotency.once(claim, encoded)
    return _decode(data, is_replayed=is_replayed)


async def claim_key(house: ServerContext, call: HttpRequest) -> IdempotencyClaim:
    """HttpError for an invalid key; IdempotencyConflict."""
    given = call.headers.get("idempotency-key")
    if given is None:
        return IdempotencyClaim()
    if not 1 <= len(given) <= MAX_KEY_CHARS or not all("!" <= letter <= "~" for letter in given):
        words = f"An idempotency key has 1 to {MAX_KEY_CHARS} printable ASCII characters."
        raise HttpError(400, "invalid_idempotency_key", words, param="Idempotency-Key")
    session = f"{call.headers.get('x-hermes-session-id', '')}\0{call.session_key}"
    fingerprint = digest(call.path, session, call.raw.decode("utf-8", "replace"))
    return await house.idempotency.claim(call.client.name, call.route, given, fingerprint)


def _encode(response: HttpResponse) -> bytes:
    """A line with status and headers, then the body."""
    headers = [[name.decode(), value.decode()] for name, value in response.headers]
    return encode([response.status, headers]) + b"\n" + response.body


def _decode(data: bytes, *, is_replayed: bool) -> HttpResponse:
    head, _, body = data.partition(b"\n")
    status, pairs = decode(tuple[int, list[tuple[str, str]]], head)
    headers = tuple((name.encode(), value.encode()) for name, value in pairs)
    return HttpResponse(
        status=status, body=body, headers=(*headers, REPLAYED) if is_replayed else headers
    )
