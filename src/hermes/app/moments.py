"""What was found a moment ago, for a crowd that wants to know the same in one instant."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")

MOST_KEPT = 64


class Moments(Generic[V]):
    """Finds everything anew as long as `seconds` is 0, which only surfaces with many sessions at
    once change: they bear that a change counts a little later."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._found: dict[Hashable, tuple[float, V]] = {}

    def get(self, key: Hashable, find: Callable[[], V]) -> V:
        if not self.seconds:
            return find()
        now = time.monotonic()
        kept = self._found.get(key)
        if kept is not None and now - kept[0] < self.seconds:
            return kept[1]
        if len(self._found) >= MOST_KEPT:
            self._found.clear()
        value = find()
        self._found[key] = now, value
        return value
