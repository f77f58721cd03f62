"""Takes the body of an answer in, unpacked, and never more of it than was wanted."""

from __future__ import annotations

import zlib
from typing import NamedTuple

from hermes.providers.http11 import Exchange, ProtocolError


class Body(NamedTuple):
    data: bytes
    cut: bool


async def read_body(exchange: Exchange, max_bytes: int, seconds: float) -> Body:
    """The first `max_bytes` of the body. A small packed one may unfold to any size, so it is
    unpacked only as far as it is wanted."""
    unpacker = _unpacker(exchange.headers.get("content-encoding", ""))
    data = bytearray()
    while piece := await exchange.read(seconds):
        if unpacker is None:
            data += piece
        else:
            data += _unpacked(unpacker, piece, max_bytes + 1 - len(data))
        if len(data) > max_bytes:
            return Body(bytes(data[:max_bytes]), cut=True)
    return Body(bytes(data), cut=False)


def _unpacker(encoding: str) -> zlib._Decompress | None:
    match encoding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip" | "deflate":
            # 47: gzip or zlib, whichever it is.
            return zlib.decompressobj(47)
        case other:
            raise ProtocolError(f"the answer is packed as {other}")


def _unpacked(unpacker: zlib._Decompress, piece: bytes, most: int) -> bytes:
    try:
        return unpacker.decompress(piece, max(1, most))
    except zlib.error as error:
        raise ProtocolError("the answer cannot be unpacked") from error
