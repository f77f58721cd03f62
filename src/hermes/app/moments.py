"""What was found a moment ago, for a crowd that wants to know the same in one instant."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from hermes.app.build import App

V = TypeVar("V")

MOST_KEPT = 64
# A secret that another process has just written down is masked from then on at the latest.
SECRET_SECONDS = 0.05


class Moments(Generic[V]):
    """Finds everything anew as long as `seconds` is 0, which only surfaces with many sessions at
    once change: they bear that a change counts a little later."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._found: dict[Hashable, tuple[float, V]] = {}

    def get(self, key: Hashable, find: Callable[[], V]) -> V:
        if not self.seconds:
            return find()
        kept = self._found.get(key)
        if kept is not None and time.monotonic() - kept[0] < self.seconds:
            return kept[1]
        return self.keep(key, find())

    def kept(self, key: Hashable) -> V | None:
        """For who must wait to find it: what is still good, None when nothing is."""
        kept = self._found.get(key)
        if kept is None or time.monotonic() - kept[0] >= self.seconds:
            return None
        return kept[1]

    def keep(self, key: Hashable, value: V) -> V:
        if self.seconds:
            if len(self._found) >= MOST_KEPT:
                self._found.clear()
            self._found[key] = time.monotonic(), value
        return value


def expect_crowd(app: App, seconds: float) -> None:
    """What sessions of this run that begin within so many seconds find alike is found once."""
    app.commons.expect_crowd(seconds)
    app.looked.moments.seconds = seconds
    app.models.expect_crowd(seconds)
    app.secrecy.expect_crowd(min(seconds, SECRET_SECONDS))
