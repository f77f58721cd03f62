"""Reads the settings of a platform, which are text whatever their source."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hermes.core.errors import ConfigError

_TRUE = frozenset(("1", "true", "yes", "on"))


def read_flag(settings: Mapping[str, str], name: str, default: bool = False) -> bool:
    value = settings.get(name, "").strip().lower()
    return value in _TRUE if value else default


def read_names(settings: Mapping[str, str], name: str) -> frozenset[str]:
    """A comma-separated list."""
    return frozenset(part.strip() for part in settings.get(name, "").split(",") if part.strip())


def read_number(settings: Mapping[str, str], name: str, default: int) -> int:
    value = settings.get(name, "").strip()
    try:
        return int(value) if value else default
    except ValueError:
        raise ConfigError(f"{name} is {value!r}; set it to a whole number.") from None


def read_patterns(settings: Mapping[str, str], name: str) -> tuple[re.Pattern[str], ...]:
    """Comma-separated regular expressions."""
    try:
        return tuple(re.compile(each, re.IGNORECASE) for each in sorted(read_names(settings, name)))
    except re.error as error:
        raise ConfigError(f"{name} is not a regular expression ({error}); correct it.") from error
