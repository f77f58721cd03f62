"""A log handler for one private file with rotation."""

from __future__ import annotations

import fcntl
import logging
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from hermes.config.home import Home


class RotatingFile(logging.Handler):
    """Writes to `path`; a full file becomes `path.1`, the previous `path.1` becomes `path.2`.
    Several processes may write to the same files: one rotates under a lock, the others reopen.
    A line that cannot be redacted or written is dropped and never raises. The first such failure
    is reported on stderr, and the next line that is written follows the number of lost ones."""

    def __init__(self, home: Home, path: Path, *, max_bytes: int, backups: int) -> None:
        super().__init__()
        self._home = home
        self._path = path
        self._max_bytes = max_bytes
        self._backups = backups
        self._file: TextIO | None = None
        self._failure = ""
        self._dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record) + "\n"
            if self._dropped:
                self._append(f"{self._dropped} log lines were dropped: {self._failure}\n")
                self._dropped = 0
            self._append(line)
        except Exception as error:
            self._close_file()
            self._report(error)

    def _append(self, line: str) -> None:
        file = self._current()
        if file.tell() and file.tell() + len(line.encode()) > self._max_bytes:
            self._rotate(file)
            file = self._current()
        file.write(line)
        file.flush()

    def _report(self, error: Exception) -> None:
        # Only the reason: the text of an error may quote the line, with its secrets.
        self._dropped += 1
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        reason = cause.strerror if isinstance(cause, OSError) else None
        is_first, self._failure = not self._failure, reason or type(error).__name__
        if is_first and sys.stderr is not None:
            with suppress(OSError, ValueError):
                sys.stderr.write(
                    f"hermes: cannot write the log {self._path} ({self._failure}); "
                    "log lines are dropped\n"
                )

    def close(self) -> None:
        self.acquire()
        try:
            self._close_file()
        finally:
            self.release()
        super().close()

    def _close_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError:
                return

    def _current(self) -> TextIO:
        if self._file is not None and not self._is_at_path(self._file):
            self._close_file()
        if self._file is None:
            self._home.ensure_folder(self._path.parent)
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
                _move(self._backup_path(number), self._backup_path(number + 1))
            if self._backups:
                _move(self._path, self._backup_path(1))
            else:
                self._path.unlink()
        self._close_file()  # releases the lock

    def _backup_path(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


def _move(old: Path, new: Path) -> None:
    try:
        old.replace(new)
    except FileNotFoundError:
        return
