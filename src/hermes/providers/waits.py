"""Reads how long to wait before a retry, from headers or error text."""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Mapping

MAX_WAIT_SECONDS = 600.0
"""Upper bound in seconds, whatever the server asks for."""

# Patterns are compiled on use: most runs never see such an error.
_IN_WORDS = (
    r"(?:try again|retry|reset\w*|retrydelay\"?:)\s*(?:in|after)?\s*\"?"
    r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|sec|seconds?|m|min|minutes?|h|hours?)\b"
)
_DURATION = r"(\d+(?:\.\d+)?)(ms|s|m|h|d)"
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DATES = ("%a, %d %b %Y %H:%M:%S GMT", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S+00:00")
# Numbers above these are timestamps, not durations.
_EPOCH_SECONDS = 1e9
_EPOCH_MILLISECONDS = 1e12


def retry_after(headers: Mapping[str, str], text: str, *, now: float) -> float | None:
    """Seconds from now, or None if the server said nothing. Header names are in lower case."""
    if milliseconds := headers.get("retry-after-ms"):
        found = _span(milliseconds, now=now)
        if found is not None:
            return found / 1000
    if (wish := headers.get("retry-after")) and (found := _span(wish, now=now)) is not None:
        return found
    resets = [found for value in _resets(headers) if (found := _span(value, now=now)) is not None]
    if resets:
        return max(resets)
    return _from_text(text)


def _resets(headers: Mapping[str, str]) -> list[str]:
    """The reset times of exhausted limits; of all limits if none is marked as exhausted."""
    resets = {name: value for name, value in headers.items() if "ratelimit" in name}
    names = [name for name in resets if "reset" in name]
    spent = [
        name for name in names if resets.get(name.replace("reset", "remaining"), "").strip() == "0"
    ]
    return [resets[name] for name in spent or names]


def _span(value: str, *, now: float) -> float | None:
    value = value.strip()
    try:
        number = float(value)
    except ValueError:
        return _duration(value) if re.match(_DURATION, value) else _until(value, now=now)
    if number >= _EPOCH_MILLISECONDS:
        number = number / 1000 - now
    elif number >= _EPOCH_SECONDS:
        number -= now
    return max(0.0, number) if number == number else None


def _duration(value: str) -> float:
    return sum(float(amount) * _UNITS[unit] for amount, unit in re.findall(_DURATION, value))


def _until(value: str, *, now: float) -> float | None:
    for form in _DATES:
        try:
            moment = calendar.timegm(time.strptime(value, form))
        except ValueError:
            continue
        return max(0.0, moment - now)
    return None


def _from_text(text: str) -> float | None:
    found = re.search(_IN_WORDS, text, re.IGNORECASE)
    if found is None:
        return None
    unit = found[2].lower()
    key = "ms" if unit.startswith(("ms", "mil")) else unit[0]
    return float(found[1]) * _UNITS[key]
