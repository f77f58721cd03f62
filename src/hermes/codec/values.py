"""The base class of all values, and a small cache of results by identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeAlias, TypeVar, dataclass_transform

import msgspec

# JSON that has not been decoded into a value yet. Recursive aliases would make every access a cast,
# so the leaves stay `Any`. Such objects live at the wire and end in `decode`.
JsonValue: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Any]


@dataclass_transform(frozen_default=True, kw_only_default=True)
class ValueMeta(msgspec.StructMeta):
    """Tells type checkers that every value is frozen and keyword-only."""


class Value(
    msgspec.Struct,
    metaclass=ValueMeta,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
):
    """The base of all values. Defaults are not encoded, so a default is part of the stored
    format."""


V = TypeVar("V", bound=Value)


def replace(value: V, /, **changes: Any) -> V:
    """Return the same value with other fields."""
    return msgspec.structs.replace(value, **changes)


K = TypeVar("K")
CachedValue = TypeVar("CachedValue")

# Sessions share these objects, so there are few in a run.
FEW = 16


class IdentityCache(Generic[K, CachedValue]):
    """Keeps a few results together with their arguments, so that no argument is freed and its id
    reused."""

    def __init__(self, work_out: Callable[[K], CachedValue]) -> None:
        self._work_out = work_out
        self._known: dict[int, tuple[K, CachedValue]] = {}

    def __call__(self, key: K) -> CachedValue:
        entry = self._known.get(id(key))
        if entry is None:
            if len(self._known) >= FEW:
                self._known.clear()
            entry = self._known[id(key)] = (key, self._work_out(key))
        return entry[1]

    def clear(self) -> None:
        self._known.clear()
