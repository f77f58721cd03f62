"""The hash chain: each record of a session seals the one before it, so that edits are detected."""

from __future__ import annotations

from hashlib import blake2b

from hermes.codec.json import encode

HASH_BYTES = 16


def chain_seed(session_id: str) -> bytes:
    """The hash that the first record of a session is chained to."""
    return blake2b(session_id.encode(), digest_size=HASH_BYTES).digest()


def chain_hash(
    previous: bytes, n: int, turn_id: str, kind: str, version: int, at: float, body: bytes
) -> bytes:
    # The fields are framed as a JSON array, so that no two different records have the same bytes.
    frame = encode((n, turn_id, kind, version, at))
    return blake2b(previous + frame + body, digest_size=HASH_BYTES).digest()
