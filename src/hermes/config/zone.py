"""Sets the time zone of this process."""

from __future__ import annotations

import os
import time


def set_time_zone(name: str) -> str:
    """Sets the time zone of this process and its children. Returns an error message for an unknown
    name, else ""."""
    # Slow to load and rarely needed.
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return f"timezone: unknown zone {name!r}; use a name like Europe/Berlin."
    os.environ["TZ"] = name
    time.tzset()
    return ""
