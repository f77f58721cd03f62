"""Makes folders writable for a moment and restores their modes."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


class WritableFolders:
    def __init__(self) -> None:
        self._modes: dict[str, tuple[int, int]] = {}

    def open(self, folder: str) -> None:
        """Make sure that names in it can be created and removed; also open closed folders above
        it."""
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
                # Another folder may be there by now, even with the same inode.
                found = os.lstat(path)
                if found.st_ino == inode and stat.S_ISDIR(found.st_mode):
                    Path(path).chmod(mode)
        self._modes.clear()
