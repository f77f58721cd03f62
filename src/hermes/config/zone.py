"""The time zone in which this process tells times."""

from __future__ import annotations

import os
import time


def use_zone(name: str) -> str:
    """From now on times are told as they are there, by the commands that we run too. What is wrong
    with the name, in a sentence; then nothing changes."""
    # Few people set one.
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return f"timezone: there is no {name!r}; a name like Europe/Berlin is wanted."
    os.environ["TZ"] = name
    time.tzset()
    return ""
