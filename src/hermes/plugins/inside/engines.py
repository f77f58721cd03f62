"""Creates one context engine per session. Standard library only."""

from __future__ import annotations

import copy
import logging
from typing import Any


class EngineFactory:
    """`pattern` is a class, instantiated without arguments, or an object, which is copied; an
    object that cannot be copied is shared."""

    def __init__(self, pattern: Any, logger: logging.Logger) -> None:
        self._pattern = pattern
        self._logger = logger
        self._of: dict[str, Any] = {}
        self.sample = self._create()

    @property
    def name(self) -> Any:
        return getattr(self.sample, "name", None)

    def of(self, session_id: str) -> Any:
        if session_id not in self._of:
            self._of[session_id] = self._create()
        return self._of[session_id]

    def forget(self, session_id: str) -> None:
        self._of.pop(session_id, None)

    def _create(self) -> Any:
        if isinstance(self._pattern, type):
            return self._pattern()
        try:
            return copy.deepcopy(self._pattern)
        except Exception:
            self._logger.warning("the engine cannot be copied; sessions share it", exc_info=True)
            return self._pattern
