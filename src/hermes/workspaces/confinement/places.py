"""One name in an open folder descriptor. Reading, moving and writing never follow paths, which
others could change meanwhile."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class DirectoryEntry:
    def __init__(self, folder: int, name: str) -> None:
        self._folder = folder
        self._name = name

    @property
    def exists(self) -> bool:
        return self._found is not None

    @property
    def link(self) -> str | None:
        """Return the target of a symbolic link."""
        try:
            return os.readlink(self._name, dir_fd=self._folder)
        except OSError:
            return None

    @property
    def _found(self) -> os.stat_result | None:
        try:
            return os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
        except OSError:
            return None

    def read(self) -> bytes | None:
        """Return the content of a regular file."""
        found = self._found
        if found is None or not stat.S_ISREG(found.st_mode):
            return None
        with os.fdopen(os.open(self._name, _READ, dir_fd=self._folder), "rb") as file:
            return file.read()

    def write(self, data: bytes, mode: int) -> None:
        with os.fdopen(os.open(self._name, _NEW, mode, dir_fd=self._folder), "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)

    def move(self, target: Path) -> None:
        """Move it out of the folder, without permission to execute."""
        try:
            os.rename(self._name, target, src_dir_fd=self._folder)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._copy(target)
        with contextlib.suppress(OSError):
            if target.is_file() and not target.is_symlink():
                target.chmod(0o600)

    def _copy(self, target: Path) -> None:
        # shutil loads several compressors and is rarely needed.
        import shutil

        here = f"/proc/self/fd/{self._folder}/{self._name}"
        found = self._found
        if found is not None and stat.S_ISDIR(found.st_mode):
            shutil.copytree(here, target, symlinks=True)
            shutil.rmtree(self._name, dir_fd=self._folder)
            return
        with contextlib.suppress(OSError, shutil.SpecialFileError):
            shutil.copy2(here, target, follow_symlinks=False)
        os.unlink(self._name, dir_fd=self._folder)
