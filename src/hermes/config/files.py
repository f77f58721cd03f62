"""Atomic replacement of private files in a home, and the lock that serialises their writers."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes.codec import whole_files
from hermes.config.home import Home, unwritable_error


def replace_file(home: Home, path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replaces a file atomically with mode 0600; raises ConfigError. The target of a symbolic
    link is replaced, not the link. Without `durable` a power cut may lose the write."""
    home.ensure_folder(path.parent)
    try:
        whole_files.replace_file(path, data, mode=whole_files.PRIVATE, durable=durable)
    except OSError as error:
        raise unwritable_error(path, error) from error


@contextmanager
def config_lock(home: Home) -> Iterator[None]:
    """Holds the lock for writes to config.yaml and `.env`."""
    path = home.ensure_folder(home.locks) / "config.lock"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    except OSError as error:
        raise unwritable_error(path, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
