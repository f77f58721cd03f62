"""How much a plugin keeps in the folder that is its own, and whether that is too much."""

from __future__ import annotations

import os
from pathlib import Path

MEGABYTE = 1024 * 1024
# Who makes more files than this is counted no further.
MOST_FILES = 50_000


def size_of(folder: Path) -> int:
    """Bytes on the disk of all files below; links are not followed. A folder with too many files
    to count is as large as can be."""
    total = files = 0
    for place, _, names in os.walk(folder):
        for name in names:
            files += 1
            if files > MOST_FILES:
                return 1 << 62
            try:
                found = os.lstat(os.path.join(place, name))  # noqa: PTH118
            except OSError:
                continue
            total += found.st_blocks * 512
    return total


def overfull(folder: Path, most_mb: int) -> str:
    """What to say of a folder that holds too much; "" while there is room."""
    size = size_of(folder)
    if size <= most_mb * MEGABYTE:
        return ""
    much = "too many files" if size >= 1 << 62 else f"{size // MEGABYTE} MB"
    return f"keeps {much} in {folder}, and {most_mb} MB is the most (plugins.data_mb)"
