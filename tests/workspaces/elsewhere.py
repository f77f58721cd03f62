"""A folder for tests that is not among temporary files, which are everybody's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def folder_at_home() -> Iterator[Path]:
    folder = Path.home().resolve() / f".hermes-test-{os.getpid()}"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
