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
            path=path, kind=_kind(found), size=found.st_size, modified_ns=found.st_mtime_ns
        )


def list_folder(path: str) -> tuple[FileInfo, ...]:
    """List a folder by name; entries that cannot be read have the kind "other"."""
    with explain_errors(path):
        names = sorted(entry.name for entry in Path(path).iterdir())
    return tuple(_entry(str(Path(path, name))) for name in names)


def _entry(path: str) -> FileInfo:
    try:
        found = file_info(path)
    except ToolError:
        found = None
    return found or FileInfo(path=path, kind="other", size=0, modified_ns=0)


def _kind(found: os.stat_result) -> Literal["file", "folder", "other"]:
    if stat.S_ISREG(found.st_mode):
        return "file"
    return "folder" if stat.S_ISDIR(found.st_mode) else "other"


def read_file(path: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
    with explain_errors(path):
        # Opening a pipe would wait for its writer, so check first.
        found = Path(path).stat()
        refuse_special(path, _kind(found))
        if found.st_size > max_bytes:
            raise too_large_error(path, found.st_size)
        return Path(path).read_bytes()


def write_file(path: str, data: bytes) -> None:
    with explain_errors(path):
        target = Path(os.path.realpath(path))
        mode = None
        with contextlib.suppress(FileNotFoundError):
            found = target.stat()
            refuse_special(path, _kind(found))
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
    except FileNotFoundError as error:
        raise ToolError(f"{path} does not exist. Check the path with search_files.") from error
    except IsADirectoryError as error:
        raise ToolError(f"{path} is a folder. Name a file in it.") from error
    except (NotADirectoryError, FileExistsError) as error:
        raise ToolError(f"A parent of {path} is a file, not a folder. Check the path.") from error
    except PermissionError as error:
        raise ToolError(f"No permission for {path}. Use another path or ask the user.") from error
    except OSError as error:
        raise ToolError(f"{path}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    match error.errno:
        case errno.ENOTEMPTY:
            return "the folder is not empty; delete its content first."
        case errno.ENOSPC | errno.EDQUOT:
            return "the disk is full; nothing was written. Free space or ask the user."
        case errno.EROFS:
            return "the file system is read-only. Choose another path."
        case errno.ELOOP:
            return "the symbolic links form a loop. Check the path."
        case errno.ENAMETOOLONG:
            return "the name is too long. Choose a shorter one."
        case _:
            return f"{error.strerror or error}. Check the path and try again."
