"""The first place where two pieces of JSON differ, in words short enough for one line each."""

from __future__ import annotations

from typing import NamedTuple

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonValue

SHOWN = 160
_LEAD = 24


class Difference(NamedTuple):
    field: str
    recorded: str
    now: str


def difference(recorded: bytes, now: bytes) -> Difference:
    """`field` is a path like messages[3].content; empty when the bytes are no JSON or differ only
    in how they are written."""
    try:
        found = _walk(decode(object, recorded), decode(object, now), "")
    except DecodeError:
        found = None
    if found is None:
        one, other = recorded.decode("utf-8", "replace"), now.decode("utf-8", "replace")
        return Difference("", *_around(one, other))
    return found


def _walk(one: JsonValue, other: JsonValue, path: str) -> Difference | None:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in (*one, *(key for key in other if key not in one)):
            place = f"{path}.{key}" if path else str(key)
            if key not in one or key not in other:
                return Difference(place, _format(one, key), _format(other, key))
            if found := _walk(one[key], other[key], place):
                return found
        return None
    if isinstance(one, list) and isinstance(other, list):
        for number in range(max(len(one), len(other))):
            place = f"{path}[{number}]"
            if number >= min(len(one), len(other)):
                return Difference(place, _nth(one, number), _nth(other, number))
            if found := _walk(one[number], other[number], place):
                return found
        return None
    if one == other and type(one) is type(other):
        return None
    if isinstance(one, str) and isinstance(other, str):
        return Difference(path, *_around(one, other))
    return Difference(path, _short(one), _short(other))


def _around(one: str, other: str) -> tuple[str, str]:
    """Both texts from a little before the place where they part."""
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    at = min(len(one), len(other)) if at is None else at
    start = max(0, at - _LEAD)
    lead = "…" if start else ""
    return lead + _cut(one[start:]), lead + _cut(other[start:])


def _format(holder: dict[str, JsonValue], key: str) -> str:
    return _short(holder[key]) if key in holder else "(absent)"


def _nth(items: list[JsonValue], number: int) -> str:
    return _short(items[number]) if number < len(items) else "(absent)"


def _short(value: JsonValue) -> str:
    return _cut(value if isinstance(value, str) else encode(value).decode("utf-8", "replace"))


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
