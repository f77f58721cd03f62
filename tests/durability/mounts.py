"""Small file systems of a test's own, where this machine lets it have them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(path: Path, *options: str) -> Iterator[Path]:
    """An empty file system in memory; skips the test where that is not allowed."""
    path.mkdir(parents=True)
    words = ["-t", "tmpfs", "-o", ",".join((*options, "mode=700")), "none", str(path)]
    if os.getuid() != 0 or not _works("mount", *words):
        pytest.skip("file systems cannot be mounted here")
    try:
        yield path
    finally:
        assert _works("umount", "-l", str(path))


def _works(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
