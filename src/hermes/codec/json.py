"""JSON: strict decoding with readable errors, compact and byte-stable encoding."""

from __future__ import annotations

from functools import lru_cache
from threading import RLock
from typing import Any, TypeVar, cast

import msgspec

from hermes.codec.values import JsonObject

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_sorted_encoder = msgspec.json.Encoder(order="sorted")
# msgspec caches what it learns about a type; two threads that learn the same type at once crash the
# process.
_learning = RLock()


class DecodeError(ValueError):
    """The bytes are not JSON, or not JSON of the requested type; the text says where."""


@lru_cache(maxsize=256)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    with _learning:
        return msgspec.json.Decoder(kind)


def decode(kind: type[T], raw: bytes | str) -> T:
    """Decode a value of this type, which may be a union. Raise DecodeError."""
    try:
        return cast(T, _decoder(cast(Any, kind)).decode(raw))
    except (msgspec.DecodeError, UnicodeError) as error:
        raise DecodeError(str(error)) from error
    except RecursionError as error:
        raise DecodeError("It is nested too deeply") from error


def convert(kind: type[T], raw: object, *, lenient: bool = False) -> T:
    """Convert plain lists and dicts to a value; `lenient` also takes "5" for 5."""
    try:
        with _learning:
            return msgspec.convert(raw, kind, strict=not lenient)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise DecodeError(str(error)) from error
    except RecursionError as error:
        raise DecodeError("It is nested too deeply") from error


def encode(value: object) -> bytes:
    """Encode as compact JSON. Struct fields keep their order, so equal values give equal bytes."""
    return _encoder.encode(value)


def encode_sorted(value: object) -> bytes:
    """Encode as compact JSON with sorted keys, for dicts that other code ordered."""
    return _sorted_encoder.encode(value)


def plain(value: object) -> JsonObject:
    """Return a value as a plain dict."""
    return cast(JsonObject, msgspec.to_builtins(value))
