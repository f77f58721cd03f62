"""The format of a tape file: compressed frames, with requests as differences."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import msgspec

from hermes.codec.values import JsonObject, Value
from hermes.core.errors import Reason

BLOCK = 8192


class BodyDelta(NamedTuple):
    """A request body as the difference from the previous one: `body` lies between the first `head`
    and the last `tail` bytes of the previous request."""

    head: int
    tail: int
    body: bytes


def diff_body(before: bytes, now: bytes) -> BodyDelta:
    most = min(len(before), len(now))
    head = _common_length(most, lambda at, size: before[at : at + size] == now[at : at + size])
    ends = len(before), len(now)
    tail = _common_length(
        most - head,
        lambda at, size: (
            before[ends[0] - at - size : ends[0] - at] == now[ends[1] - at - size : ends[1] - at]
        ),
    )
    return BodyDelta(head, tail, now[head : len(now) - tail])


def restore_body(before: bytes, head: int, tail: int, body: bytes) -> bytes:
    return before[:head] + body + (before[-tail:] if tail else b"")


def _common_length(most: int, same: Callable[[int, int], bool]) -> int:
    """Return the number of equal bytes, at most `most`, counted from one end; `same` compares a
    range. Compares in blocks, because requests are long and mostly unchanged."""
    at, size = 0, BLOCK
    while size and at < most:
        step = min(size, most - at)
        if same(at, step):
            at += step
        else:
            size = step // 2
    return at


# Fast, and requests of a session repeat enough to compress well anyway.
LEVEL = 1
_HEAD = struct.Struct("<II")


class TapeRun(Value, tag="run"):
    """Marks that a process starts to work on a session."""

    version: str
    after: int  # the number of records of the session so far
    at: float
    facts: JsonObject  # what the app needs to repeat the run


class TapeModel(Value, tag="way"):
    """Marks that the session connects to this model."""

    model: str
    provider: str
    facts: JsonObject  # how it connects, in the app's terms


class RecordedError(Value):
    """Why no response arrived."""

    message: str
    reason: Reason
    retryable: bool = False
    unsent: bool = False


# How a response ended: read completely, abandoned by us, or by a network error.
Ending = Literal["whole", "left", "timeout", "protocol", "connection", "network"]


class RecordedExchange(Value, tag="exchange"):
    """A request and its response."""

    url: str
    # the request lies between the first `head` and the last `tail` bytes of the previous one
    body: bytes
    digest: bytes  # covers all requests so far
    head: int = 0
    tail: int = 0
    status: int = 0
    headers: dict[str, str] = {}
    answer: bytes = b""
    sizes: tuple[int, ...] = ()  # the bytes of each piece of the response
    # milliseconds since the previous piece; the first is that of the response head
    times: tuple[int, ...] = ()
    ending: Ending = "left"
    fault: RecordedError | None = None
    masked: int = 0  # the number of secrets that were removed

    def pieces(self) -> Iterator[bytes]:
        at = 0
        for size in self.sizes:
            yield self.answer[at : at + size]
            at += size


TapeFrame = TapeRun | TapeModel | RecordedExchange

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(TapeFrame)


# How data ends after every complete frame.
_FLUSHED = b"\x00\x00\xff\xff"


class FrameEncoder:
    """Encodes frames for one file. Packed frames stay readable whatever follows."""

    def __init__(self) -> None:
        self._stream = zlib.compressobj(LEVEL)

    def encode(self, frame: TapeFrame) -> bytes:
        body = _encoder.encode(frame)
        framed = _HEAD.pack(len(body), zlib.crc32(body)) + body
        return self._stream.compress(framed) + self._stream.flush(zlib.Z_SYNC_FLUSH)


def decode_frames(data: bytes) -> Iterator[TapeFrame]:
    """Yield the frames of a file. One that a killed process did not finish is left out. Raises
    ValueError where the file is damaged."""
    plain, error = _inflate(data)
    at = 0
    while at + _HEAD.size <= len(plain):
        size, check = _HEAD.unpack_from(plain, at)
        body = plain[at + _HEAD.size : at + _HEAD.size + size]
        if len(body) < size:
            break
        if zlib.crc32(body) != check:
            raise ValueError("a part does not match its checksum")
        try:
            yield _decoder.decode(body)
        except msgspec.DecodeError as wrong:
            raise ValueError("a part cannot be decoded") from wrong
        at += _HEAD.size + size
    if error:
        raise ValueError(error)
    if at < len(plain) and data.endswith(_FLUSHED):
        raise ValueError("a part is missing")


def _inflate(data: bytes) -> tuple[bytes, str]:
    """Decompress in steps, so that damage costs only what comes after it; also return what is
    wrong, or ""."""
    stream, found = zlib.decompressobj(), bytearray()
    for at in range(0, len(data), 4096):
        try:
            found += stream.decompress(data[at : at + 4096])
        except zlib.error:
            return bytes(found), "it cannot be decompressed"
    # The encoder never ends the stream.
    return bytes(found), "it ends in the middle" if stream.eof else ""
