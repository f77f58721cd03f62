"""Parses ages and dates as people type them: "90" (days), "12h", "30d", "2w", "2026-05-01"."""

from __future__ import annotations

import re
from datetime import datetime

from hermes.core.errors import UsageError

_SECONDS = {"": 86_400, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_AGE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([hdw]?)\s*", re.IGNORECASE)


def parse_age(text: str) -> float:
    """An age in seconds; UsageError."""
    match = _AGE.fullmatch(text)
    if match is None:
        raise UsageError(f"“{text}” is not an age; write 90 or 30d for days, 12h, or 2w.")
    return float(match[1]) * _SECONDS[match[2].lower()]


def parse_since(text: str, now: float) -> float:
    """Seconds since 1970 of a date (UTC unless it names a zone), or of an age before now."""
    if _AGE.fullmatch(text):
        return now - parse_age(text)
    is_day = len(text.strip()) == len("2026-05-01")
    return parse_date(f"{text.strip()}T00:00:00+00:00" if is_day else text)


def parse_date(text: str) -> float:
    """Seconds since 1970 of an ISO date or time, local unless it names a zone; UsageError."""
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(f"“{text}” is not a date; write 2026-05-01 or 2026-05-01T14:30.") from None
