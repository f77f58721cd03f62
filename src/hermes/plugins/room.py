"""Limits the size of a plugin's data folder."""

from __future__ import annotations

import os
from pathlib import Path

MEGABYTE = 1024 * 1024
# Counting stops at this number of files.
MOST_FILES = 50_000


def folder_size(folder: Path) -> int:
    """Returns the bytes on disk below a folder, without following links; a huge value for too
    many files."""
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


def quota_fault(folder: Path, most_mb: int) -> str:
    """Returns why a folder is too large, or ""."""
    size = folder_size(folder)
    if size <= most_mb * MEGABYTE:
        return ""
    much = "too many files" if size >= 1 << 62 else f"{size // MEGABYTE} MB"
    return f"stores {much} in {folder}; the limit is {most_mb} MB (plugins.data_mb)"
