"""What a tape holds, and how it lies in a file: one compressed stream of framed values."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from hermes.codec.values import JsonObject, Value
from hermes.core.errors import Reason

# Fast, and a session's requests and answers repeat themselves enough to become small all the same.
LEVEL = 1
_HEAD = struct.Struct("<II")


class Run(Value, tag="run"):
    """A process begins to work on a session that has so many records. `facts` is all that its
    app needs to do the same again, in the app's own words."""

    version: str
    after: int
    at: float
    facts: JsonObject


class Way(Value, tag="way"):
    """The session is going to ask this model. `facts` tell how, in the app's words."""

    model: str
    provider: str
    facts: JsonObject


class Fault(Value):
    """Why no answer came at all."""

    message: str
    reason: Reason
    retryable: bool = False
    unsent: bool = False


# How an answer ended: read whole, left by us before its end, or by an error of the network.
Ending = Literal["whole", "left", "timeout", "protocol", "connection", "network"]


class Exchange(Value, tag="exchange"):
    """A request and what came back. The request is `body` between the first `head` and the last
    `tail` bytes of the request before it; `digest` seals all requests so far. The answer came in
    pieces of `sizes` bytes, each so many milliseconds after the one before, `times`; the first
    time is that of the head of the answer. `masked` counts secret values that were taken out."""

    url: str
    body: bytes
    digest: bytes
    head: int = 0
    tail: int = 0
    status: int = 0
    headers: dict[str, str] = {}
    answer: bytes = b""
    sizes: tuple[int, ...] = ()
    times: tuple[int, ...] = ()
    ending: Ending = "left"
    fault: Fault | None = None
    masked: int = 0

    def pieces(self) -> Iterator[bytes]:
        at = 0
        for size in self.sizes:
            yield self.answer[at : at + size]
            at += size


Frame = Run | Way | Exchange

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Frame)


class Packing:
    """Frames to the bytes of one file. What was packed can be read back, whatever follows."""

    def __init__(self) -> None:
        self._stream = zlib.compressobj(LEVEL)

    def pack(self, frame: Frame) -> bytes:
        body = _encoder.encode(frame)
        framed = _HEAD.pack(len(body), zlib.crc32(body)) + body
        return self._stream.compress(framed) + self._stream.flush(zlib.Z_SYNC_FLUSH)


def unpack(data: bytes) -> Iterator[Frame]:
    """The frames of a file, up to where it was torn or damaged."""
    plain, at = _inflated(data), 0
    while at + _HEAD.size <= len(plain):
        size, check = _HEAD.unpack_from(plain, at)
        body = plain[at + _HEAD.size : at + _HEAD.size + size]
        if len(body) < size or zlib.crc32(body) != check:
            return
        try:
            yield _decoder.decode(body)
        except msgspec.DecodeError:
            return
        at += _HEAD.size + size


def _inflated(data: bytes) -> bytes:
    """As much as can be had; in steps, so that a damaged place costs only what comes after it."""
    stream, found = zlib.decompressobj(), bytearray()
    for at in range(0, len(data), 4096):
        try:
            found += stream.decompress(data[at : at + 4096])
        except zlib.error:
            break
    return bytes(found)
