"""A log file that is opened at its first line, kept private, and set aside when it is full."""

from __future__ import annotations

import fcntl
import logging
import os
from pathlib import Path
from typing import TextIO

from hermes.config.home import Home


class RotatingFile(logging.Handler):
    """Writes to `path`; a full file becomes `path.1`, the one before it `path.2` and so on.
    Several processes may write to the same files: the one that finds it full rotates it under a
    lock, the others notice and follow. A line that cannot be checked for secrets or written is
    dropped: no log is worth the work that it is about."""

    def __init__(self, home: Home, path: Path, *, max_bytes: int, backups: int) -> None:
        super().__init__()
        self._home = home
        self._path = path
        self._max_bytes = max_bytes
        self._backups = backups
        self._file: TextIO | None = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record) + "\n"
            file = self._current()
            if file.tell() and file.tell() + len(line.encode()) > self._max_bytes:
                self._rotate(file)
                file = self._current()
            file.write(line)
            file.flush()
        except Exception:
            self._drop()

    def close(self) -> None:
        self.acquire()
        try:
            self._drop()
        finally:
            self.release()
        super().close()

    def _drop(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError:
                return

    def _current(self) -> TextIO:
        if self._file is not None and not self._is_at_path(self._file):
            self._drop()
        if self._file is None:
            self._home.folder(self._path.parent)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            self._file = os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")
        self._file.seek(0, os.SEEK_END)
        return self._file

    def _is_at_path(self, file: TextIO) -> bool:
        try:
            return os.path.samestat(self._path.stat(), os.fstat(file.fileno()))
        except OSError:
            return False

    def _rotate(self, file: TextIO) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        if self._is_at_path(file):
            for number in range(self._backups - 1, 0, -1):
                _move(self._numbered(number), self._numbered(number + 1))
            if self._backups:
                _move(self._path, self._numbered(1))
            else:
                self._path.unlink()
        self._drop()  # closing gives the lock back

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


def _move(old: Path, new: Path) -> None:
    try:
        old.replace(new)
    except FileNotFoundError:
        return
