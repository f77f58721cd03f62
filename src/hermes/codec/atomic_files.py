"""Atomic file writes: after a crash, a file has either its old or its new content."""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE = 0o600


def replace_file(
    path: Path,
    data: bytes,
    *,
    mode: int | None = None,
    new: int = PRIVATE,
    durable: bool = True,
    folders: bool = True,
) -> None:
    """Replace a file atomically. A symbolic link stays; its target is replaced. The file gets
    `mode`, or keeps its own; a new one gets `new`, subject to the umask. Missing `folders` are
    created for the owner only. Without `durable`, the change may be lost in a power cut, but never
    torn. OSError leaves the old file as it was."""
    target = path.resolve()
    if folders:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if mode is None and target.exists():
        mode = target.stat().st_mode & 0o7777
    draft = target.with_name(f".{target.name[:80]}.{os.urandom(4).hex()}.draft")
    try:
        write_new(draft, data, mode=mode, new=new, durable=durable)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(target.parent)


def write_new(
    path: Path,
    data: bytes,
    *,
    mode: int | None = None,
    new: int = PRIVATE,
    durable: bool = True,
) -> None:
    """Write a new file; raise FileExistsError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, new), "wb") as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        file.write(data)
        file.flush()
        if durable:
            os.fsync(file.fileno())


def append_line(path: Path, line: bytes) -> None:
    """Append a line durably. First end an unfinished line that a crash left behind."""
    is_new = not path.exists()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, PRIVATE), "r+b") as file:
        end = file.seek(0, os.SEEK_END)
        is_unfinished = end > 0 and os.pread(file.fileno(), 1, end - 1) != b"\n"
        file.write(b"\n" * is_unfinished + line + b"\n")
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make renames and removals in this folder survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
