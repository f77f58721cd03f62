"""Private files: read whole, replaced whole, changed by one process at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes.codec import whole_files
from hermes.config.home import Home, unwritable


def replace_file(home: Home, path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a file of the home whole or not at all, readable by its owner only; ConfigError.
    A symbolic link keeps pointing where it points: its target is replaced. What is not `durable`
    may be gone, but never torn, after a power cut."""
    home.folder(path.parent)
    try:
        whole_files.replace_file(path, data, mode=whole_files.PRIVATE, durable=durable)
    except OSError as error:
        raise unwritable(path, error) from error


@contextmanager
def sole_writer(home: Home) -> Iterator[None]:
    """While inside, no other process changes the settings or secrets of this home."""
    path = home.folder(home.locks) / "config.lock"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    except OSError as error:
        raise unwritable(path, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
