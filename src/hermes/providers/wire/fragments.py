"""Caches the encoded bytes of each message, so that a request joins existing fragments."""

from __future__ import annotations

from collections.abc import Callable

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.core.messages import Message
from hermes.providers.profile import MarkLife
from hermes.providers.scrub import ascii_json

_MAX_MARKS = 3
"""Number of messages at the end with a cache mark, besides the system text."""

# A fragment with this end closes an object inside the list that is its last field; a mark is
# inserted before the end.
_MARKABLE = b"}]}"
TEXT_PART_END = b'"}]}'
"""The same for an object that ends with a string: a text part does, an image does not."""

Encode = Callable[[Message], bytes]


class Fragments:
    """Encoded messages of the latest prompt, keyed by identity. A prompt that only grew costs only
    its new messages."""

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._messages: tuple[Message, ...] = ()
        self._bytes: list[bytes] = []

    def missing(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The messages that are not encoded yet."""
        if self._extends(messages):
            return messages[len(self._messages) :]
        held = set(map(id, self._messages))
        return tuple(message for message in messages if id(message) not in held)

    def of(self, messages: tuple[Message, ...]) -> list[bytes]:
        if self._extends(messages):
            self._bytes += [self._encode(m) for m in messages[len(self._messages) :]]
        else:
            held = dict(zip(map(id, self._messages), self._bytes, strict=True))
            self._bytes = [held.get(id(m)) or self._encode(m) for m in messages]
        self._messages = messages
        return self._bytes

    def _extends(self, messages: tuple[Message, ...]) -> bool:
        return messages[: len(self._messages)] == self._messages


def join_request(head: bytes, fragments: list[bytes], end: bytes) -> bytes:
    """Joins the request in one copy: requests of long sessions are large."""
    if len(fragments) == 1:
        return head + fragments[0] + end
    return b",".join((head + fragments[0], *fragments[1:-1], fragments[-1] + end))


def json_bytes(value: object, *, ascii: bool) -> bytes:
    encoded = encode(value)
    return ascii_json(encoded) if ascii else encoded


def cache_mark(life: MarkLife) -> JsonObject:
    return {"type": "ephemeral"} if life == "5m" else {"type": "ephemeral", "ttl": life}


def add_cache_marks(
    fragments: list[bytes], life: MarkLife, *, on: bytes = _MARKABLE
) -> list[bytes]:
    """Adds cache marks to the last fragments that end with `on`."""
    addition = b',"cache_control":' + encode(cache_mark(life))
    result = list(fragments)
    left = _MAX_MARKS
    for place in range(len(result) - 1, -1, -1):
        if not left:
            break
        if result[place].endswith(on):
            result[place] = result[place][: -len(_MARKABLE)] + addition + _MARKABLE
            left -= 1
    return result
