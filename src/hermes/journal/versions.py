"""The version of each event kind, and the upgrades of older bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, cast, get_args

from hermes.codec.json import convert, decode
from hermes.codec.values import JsonObject
from hermes.core.events import DurableEvent

Upgrade: TypeAlias = Callable[[JsonObject], JsonObject]

# A union can be decoded, although it is not a `type` for the type checker.
EVENT = cast(type[DurableEvent], DurableEvent)

KINDS: Mapping[type, str] = {
    event: cast(str, event.__struct_config__.tag) for event in get_args(DurableEvent)
}

CURRENT: Mapping[str, int] = dict.fromkeys(KINDS.values(), 1)

# (kind, 1) upgrades a body of version 1 to version 2, and so on, one step each.
UPGRADES: Mapping[tuple[str, int], Upgrade] = {}


def is_newer(kind: str, version: int, *, current: Mapping[str, int] = CURRENT) -> bool:
    """Written by a newer Hermes: it cannot be interpreted and must not be changed."""
    return version > current.get(kind, 0)


def event_of(
    kind: str,
    version: int,
    body: bytes,
    *,
    current: Mapping[str, int] = CURRENT,
    upgrades: Mapping[tuple[str, int], Upgrade] = UPGRADES,
) -> DurableEvent:
    """The event of a stored body; DecodeError when the body is damaged."""
    if version == current[kind]:
        return decode(EVENT, body)
    raw = decode(dict, body)
    for step in range(version, current[kind]):
        raw = upgrades[kind, step](raw)
    return convert(EVENT, raw)
