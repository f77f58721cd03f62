"""Reads, hashes and copies the files of a plugin, so that the approved files are those that run."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from hermes.core.errors import ConfigError

MOST_FILES = 2_000
MOST_BYTES = 50_000_000
_LEFT_OUT = frozenset(("__pycache__", ".git", ".install.json", ".pytest_cache", ".mypy_cache"))

Contents = dict[str, bytes]


def read_contents(root: Path) -> Contents:
    """Return files by relative path, or by name for a single file. Raise ConfigError for links and
    special files."""
    if root.is_symlink():
        raise ConfigError(f"{root.name} is a link; a plugin must be a real file or folder.")
    if root.is_file():
        return {root.name: _read(root)}
    if not root.is_dir():
        raise ConfigError(f"{root} no longer exists; install the plugin again.")
    contents: Contents = {}
    size = 0
    for path in _files(root):
        data = _read(path)
        size += len(data)
        contents[path.relative_to(root).as_posix()] = data
        if len(contents) > MOST_FILES or size > MOST_BYTES:
            raise ConfigError(
                f"{root.name} has more than {MOST_FILES} files or {MOST_BYTES // 1_000_000} MB."
            )
    return contents


def hash_of(contents: Contents) -> str:
    whole = hashlib.sha256()
    for name, data in sorted(contents.items()):
        whole.update(f"{len(name.encode())}:{name}:{len(data)}:".encode())
        whole.update(data)
    return whole.hexdigest()


def write_copy(contents: Contents, folder: Path) -> Path:
    """Write a complete copy to `folder`; an existing one that differs is replaced, because its name
    contains the hash."""
    with contextlib.suppress(ConfigError, OSError):
        if folder.is_dir() and read_contents(folder) == contents:
            return folder
    remove_copy(folder)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}")
    remove_copy(partial)
    for name, data in contents.items():
        file = partial / name
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.write_bytes(data)
        file.chmod(0o400)
    try:
        partial.rename(folder)
    except OSError:
        # Another process created the same copy.
        remove_copy(partial)
    return folder


def remove_copy(folder: Path) -> None:
    from shutil import rmtree

    rmtree(folder, ignore_errors=True)


def _files(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.name in _LEFT_OUT or entry.suffix == ".pyc":
            continue
        mode = entry.lstat().st_mode
        if stat.S_ISDIR(mode):
            yield from _files(entry)
        elif stat.S_ISREG(mode):
            yield entry
        else:
            raise ConfigError(f"{entry.name} in the plugin is a link or a special file.")


def _read(file: Path) -> bytes:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise ConfigError(f"{file.name} of the plugin cannot be read: {error.strerror}.") from error
    with os.fdopen(descriptor, "rb") as opened:
        return opened.read(MOST_BYTES + 1)
