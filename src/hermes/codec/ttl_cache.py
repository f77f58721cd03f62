"""A TTL cache for servers that open many sessions at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")

MOST_KEPT = 64


class TtlCache(Generic[V]):
    """Caches nothing while `seconds` is 0, the default. Only surfaces that open many sessions at
    once raise it: for them a change may take effect a moment later."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._values: dict[Hashable, tuple[float, V]] = {}

    def get(self, key: Hashable, load: Callable[[], V]) -> V:
        """Return the cached value, or load it and cache it."""
        if not self.seconds:
            return load()
        entry = self._values.get(key)
        if entry is not None and time.monotonic() - entry[0] < self.seconds:
            return entry[1]
        return self.put(key, load())

    def peek(self, key: Hashable) -> V | None:
        """Return the cached value while it is fresh, for callers that load it asynchronously."""
        entry = self._values.get(key)
        if entry is None or time.monotonic() - entry[0] >= self.seconds:
            return None
        return entry[1]

    def put(self, key: Hashable, value: V) -> V:
        if self.seconds:
            if len(self._values) >= MOST_KEPT:
                self._values.clear()
            self._values[key] = time.monotonic(), value
        return value
