"""Reads and decompresses the body of a response, up to a limit."""

from __future__ import annotations

import zlib
from typing import NamedTuple

from hermes.providers.http11 import HttpExchange, ProtocolError


class ResponseBody(NamedTuple):
    data: bytes
    cut: bool


async def read_body(exchange: HttpExchange, max_bytes: int, seconds: float) -> ResponseBody:
    """Return the first `max_bytes` of the body. A small compressed body may expand to any size, so
    decompression stops at the limit."""
    unpacker = _make_decompressor(exchange.headers.get("content-encoding", ""))
    data = bytearray()
    while piece := await exchange.read(seconds):
        if unpacker is None:
            data += piece
        else:
            data += _decompress(unpacker, piece, max_bytes + 1 - len(data))
        if len(data) > max_bytes:
            return ResponseBody(bytes(data[:max_bytes]), cut=True)
    return ResponseBody(bytes(data), cut=False)


def _make_decompressor(encoding: str) -> zlib._Decompress | None:
    match encoding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip" | "deflate":
            # 47: gzip or zlib.
            return zlib.decompressobj(47)
        case other:
            raise ProtocolError(f"the response is compressed as {other}")


def _decompress(unpacker: zlib._Decompress, piece: bytes, most: int) -> bytes:
    try:
        return unpacker.decompress(piece, max(1, most))
    except zlib.error as error:
        raise ProtocolError("the response cannot be decompressed") from error
