"""A folder for tests that is not among temporary files, which are everybody's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def folder_at_home() -> Iterator[Path]:
    folder = Path.home().resolve() / f".hermes-test-{os.getpid()}"
    if folder.is_relative_to("/tmp"):
        pytest.skip("needs a home that does not lie among temporary files")
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
