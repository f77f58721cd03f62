"""Local files and folders: atomic writes, and errors that say what to do next."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from hermes.codec.atomic_files import replace_file
from hermes.core.errors import ToolError
from hermes.core.ports import FileInfo

MAX_READ_BYTES = 64 * 1024 * 1024
_PARENT = "A parent of {path} is a file, not a folder. Check the path."
_FORBIDDEN = "No permission for {path}. Use another path or ask the user."
_FULL = "{path}: the disk is full; nothing was written. Free space or ask the user."
EXPLANATIONS = {
    errno.ENOENT: "{path} does not exist. Check the path with search_files.",
    errno.EISDIR: "{path} is a folder. Name a file in it.",
    errno.ENOTDIR: _PARENT,
    errno.EEXIST: _PARENT,
    errno.EACCES: _FORBIDDEN,
    errno.EPERM: _FORBIDDEN,
    errno.ENOTEMPTY: "{path}: the folder is not empty; delete its content first.",
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: "{path}: the file system is read-only. Choose another path.",
    errno.ELOOP: "{path}: the symbolic links form a loop. Check the path.",
    errno.ENAMETOOLONG: "{path}: the name is too long. Choose a shorter one.",
}


def find_program(name: str, search_path: str) -> str | None:
    """Return the path of a program in the folders of a PATH."""
    for folder in search_path.split(os.pathsep):
        candidate = Path(folder or ".", name)
        # `is_file` raises for a folder without permission; no program can be used there.
        with contextlib.suppress(OSError, ValueError):
            if candidate.is_file() and os.access(candidate, os.X_OK):
                return str(candidate.absolute())
    return None


def file_info(path: str) -> FileInfo | None:
    """Return what is at a path, following links, or None."""
    with explain_errors(path):
        try:
            found = Path(path).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return FileInfo(
            path=path,
            kind=kind_of(found.st_mode),
            size=found.st_size,
            modified_ns=found.st_mtime_ns,
        )


def list_folder(path: str) -> tuple[FileInfo, ...]:
    """List a folder by name; entries that cannot be read have the kind "other"."""
    with explain_errors(path):
        names = sorted(entry.name for entry in Path(path).iterdir())
    entries = []
    for name in names:
        entry = FileInfo(path=str(Path(path, name)), kind="other", size=0, modified_ns=0)
        with contextlib.suppress(ToolError):
            entry = file_info(entry.path) or entry
        entries.append(entry)
    return tuple(entries)


def kind_of(mode: int) -> Literal["file", "folder", "other"]:
    """Return the kind of a file with these mode bits."""
    if stat.S_ISREG(mode):
        return "file"
    return "folder" if stat.S_ISDIR(mode) else "other"


def read_file(path: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
    with explain_errors(path):
        # Opening a pipe would wait for its writer, so check first.
        found = Path(path).stat()
        refuse_special(path, kind_of(found.st_mode))
        if found.st_size > max_bytes:
            raise too_large_error(path, found.st_size)
        return Path(path).read_bytes()


def write_file(path: str, data: bytes) -> None:
    with explain_errors(path):
        target = Path(os.path.realpath(path))
        mode = None
        with contextlib.suppress(FileNotFoundError):
            found = target.stat()
            refuse_special(path, kind_of(found.st_mode))
            mode = stat.S_IMODE(found.st_mode)
        _refuse_device(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, data, mode=mode, new=0o666)


def delete_file(path: str) -> None:
    with explain_errors(path):
        target = Path(path)
        if target.is_dir() and not target.is_symlink():
            target.rmdir()
        else:
            target.unlink()


def too_large_error(path: str, size: int) -> ToolError:
    return ToolError(
        f"{path} is too large to read whole ({size:,} bytes). "
        "Read parts of it with terminal: head, tail, sed -n, grep."
    )


def refuse_special(path: str, kind: Literal["file", "folder", "other"]) -> None:
    _refuse_device(path)
    if kind == "folder":
        raise IsADirectoryError(errno.EISDIR, "is a directory", path)
    if kind == "other":
        raise ToolError(f"{path} is a device, pipe or socket, not a file. Choose a regular file.")


def _refuse_device(path: str) -> None:
    parts = Path(path).parts
    device = parts[1:2] == ("dev",) and parts[2:3] != ("shm",)
    descriptor = parts[1:2] == ("proc",) and "fd" in parts[2:]
    if device or descriptor:
        raise ToolError(f"{path} is a device, not a file. Choose a regular file.")


@contextlib.contextmanager
def explain_errors(path: str) -> Iterator[None]:
    """Turn a system error into advice for the model."""
    try:
        yield
    except OSError as error:
        known = EXPLANATIONS.get(error.errno or 0, "{path}: {why}. Check the path and try again.")
        raise ToolError(known.format(path=path, why=error.strerror or error)) from error
