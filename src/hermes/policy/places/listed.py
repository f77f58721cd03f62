"""Long lists of paths, written so that they can be read."""

from __future__ import annotations

import re


def listed(text: str) -> tuple[str, ...]:
    """The entries between line ends and `|`; an entry may hold spaces."""
    return tuple(entry.strip() for entry in re.split(r"[|\n]", text) if entry.strip())
