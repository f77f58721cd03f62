"""Regular expressions that are compiled on first use: most processes need few of the policy's."""

from __future__ import annotations

import re
from typing import Any, cast

METHODS = ("match", "search", "fullmatch", "sub", "finditer", "findall", "split", "pattern")


class _Lazy:
    __slots__ = ("_source", *METHODS)

    def __init__(self, source: str, flags: int) -> None:
        self._source = (source, flags)

    def __getattr__(self, name: str) -> Any:
        """Reached once, for the first use; the slots then hold the compiled pattern's methods."""
        if name not in METHODS:
            raise AttributeError(name)
        compiled = re.compile(*self._source)
        for each in METHODS:
            setattr(self, each, getattr(compiled, each))
        return getattr(self, name)


def regex(source: str, flags: int = 0) -> re.Pattern[str]:
    return cast("re.Pattern[str]", _Lazy(source, flags))
