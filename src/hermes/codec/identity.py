"""A small cache of results by the identity of their argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
CachedValue = TypeVar("CachedValue")

# Sessions share these objects, so there are few in a run.
FEW = 16


class IdentityCache(Generic[K, CachedValue]):
    """Keeps a few results together with their arguments, so that no id is reused."""

    def __init__(self, work_out: Callable[[K], CachedValue]) -> None:
        self._work_out = work_out
        self._known: dict[int, tuple[K, CachedValue]] = {}

    def __call__(self, key: K) -> CachedValue:
        found = self._known.get(id(key))
        if found is None:
            if len(self._known) >= FEW:
                self._known.clear()
            found = self._known[id(key)] = (key, self._work_out(key))
        return found[1]

    def clear(self) -> None:
        self._known.clear()
