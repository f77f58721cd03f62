"""Rotated log files, and following one as it grows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

FOLLOW_SECONDS = 0.25


def rotated_files(path: Path) -> Iterator[Path]:
    """The file and its rotated predecessors, newest first."""
    number = 0
    file = path
    while file.exists():
        yield file
        number += 1
        file = path.with_name(f"{path.name}.{number}")


class Tail:
    """Follows a file from its current end, across rotation."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rest = b""
        self._file: BinaryIO | None = None
        self._open()
        if self._file is not None:
            self._file.seek(0, os.SEEK_END)

    def new_lines(self) -> list[str]:
        """Complete lines only. A rotated file is read to its end before the next one."""
        if self._file is None:
            self._open()
        if self._file is None:
            return []
        moved = self._is_moved(self._file)
        data = self._rest + self._file.read()
        if moved:
            self.close()
            return _decode(data) + self.new_lines()
        whole, newline, self._rest = data.rpartition(b"\n")
        return _decode(whole + newline)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._rest = None, b""

    def _open(self) -> None:
        try:
            self._file = self._path.open("rb")
        except OSError:
            self._file = None

    def _is_moved(self, file: BinaryIO) -> bool:
        try:
            return not os.path.samestat(self._path.stat(), os.fstat(file.fileno()))
        except OSError:
            return True


def _decode(data: bytes) -> list[str]:
    return [f"{line}\n" for line in data.decode(errors="replace").split("\n") if line]
