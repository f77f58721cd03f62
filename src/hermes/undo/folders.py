"""Folders that are opened for writing for a moment and closed again as they were."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


class Folders:
    def __init__(self) -> None:
        self._modes: dict[str, tuple[int, int]] = {}

    def open(self, folder: str) -> None:
        """Make sure that names in it can be made and removed; also in those above it, so far as
        they cannot be passed."""
        for each in (*reversed(Path(folder).parents), Path(folder)):
            path = str(each)
            with contextlib.suppress(OSError):
                found = os.lstat(path)
                needed = stat.S_IRWXU if path == folder else stat.S_IXUSR
                lacking = needed & ~found.st_mode
                own = found.st_uid == os.geteuid()
                if stat.S_ISDIR(found.st_mode) and lacking and own and path not in self._modes:
                    self._modes[path] = (found.st_ino, stat.S_IMODE(found.st_mode))
                    each.chmod(stat.S_IMODE(found.st_mode) | needed)

    def close(self) -> None:
        for path, (inode, mode) in sorted(self._modes.items(), reverse=True):
            with contextlib.suppress(OSError):
                # Something else may stand there by now, even with the same number.
                found = os.lstat(path)
                if found.st_ino == inode and stat.S_ISDIR(found.st_mode):
                    Path(path).chmod(mode)
        self._modes.clear()
