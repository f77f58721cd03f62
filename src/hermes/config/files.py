"""Private files: read whole, replaced whole, changed by one process at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes.config.home import Home, unwritable


def replace_file(home: Home, path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a file of the home whole or not at all, readable by its owner only; ConfigError.
    A symbolic link keeps pointing where it points: its target is replaced. What is not `durable`
    may be gone, but never torn, after a power cut."""
    target = path.resolve()
    home.folder(path.parent)
    draft = target.with_name(f".{target.name}.{os.urandom(4).hex()}.draft")
    try:
        _write_new(draft, data, synced=durable)
        draft.replace(target)
        if durable:
            _sync_folder(target.parent)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise unwritable(path, error) from error


def _write_new(path: Path, data: bytes, *, synced: bool) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        if synced:
            file.flush()
            os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
