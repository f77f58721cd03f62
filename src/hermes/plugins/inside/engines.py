"""Context engines of a plugin: one object for each session, however it was registered. Only the
standard library is used here."""

from __future__ import annotations

import copy
import logging
from typing import Any


class Engines:
    """`pattern` is a class, which is called without arguments, or an object, which is copied; one
    that cannot be copied serves all sessions itself."""

    def __init__(self, pattern: Any, logger: logging.Logger) -> None:
        self._pattern = pattern
        self._logger = logger
        self._of: dict[str, Any] = {}
        self.sample = self._made()

    @property
    def name(self) -> Any:
        return getattr(self.sample, "name", None)

    def of(self, session_id: str) -> Any:
        if session_id not in self._of:
            self._of[session_id] = self._made()
        return self._of[session_id]

    def forget(self, session_id: str) -> None:
        self._of.pop(session_id, None)

    def _made(self) -> Any:
        if isinstance(self._pattern, type):
            return self._pattern()
        try:
            return copy.deepcopy(self._pattern)
        except Exception:
            self._logger.warning("the engine cannot be copied; sessions share it", exc_info=True)
            return self._pattern
