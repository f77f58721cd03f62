"""The output of a background process: a log file that the process writes and Hermes trims."""

from __future__ import annotations

import os
from pathlib import Path

from hermes.codec.whole_files import replace_file
from hermes.workspaces.output import complete_characters, plain_text

KEPT_BYTES = 200_000
# Trimmed at this size; the process never has to stop writing.
TRIM_AT_BYTES = 4_000_000


class ProcessLog:
    """Positions count from the first byte that the process wrote. Bytes that a trim removes from
    the file but that still belong to the kept part move to a second file."""

    def __init__(
        self,
        path: Path,
        *,
        trimmed_bytes: int = 0,
        kept_bytes: int = KEPT_BYTES,
        trim_at_bytes: int = TRIM_AT_BYTES,
    ) -> None:
        self.path = path
        self._kept_bytes = kept_bytes
        self._trim_at_bytes = trim_at_bytes
        self.trimmed_bytes = trimmed_bytes
        self._older = path.with_suffix(".older")

    @property
    def end(self) -> int:
        return self.trimmed_bytes + self._size()

    def text_from(self, position: int, *, final: bool) -> tuple[str, int]:
        """Return the output since `position`, as far as it is kept, and the position after it. An
        incomplete last character is held back unless `final` is set."""
        raw, start = self._read_kept()
        fresh = raw[max(0, position - start) :]
        if not final:
            fresh = complete_characters(fresh)
        return plain_text(fresh), max(position, start) + len(fresh)

    def lines(self) -> list[str]:
        """Return the kept lines, the last one possibly unfinished."""
        return plain_text(self._read_kept()[0]).splitlines()

    def tail(self, characters: int) -> str:
        return plain_text(self._read_kept()[0])[-characters:]

    def trim(self) -> bool:
        """Shorten a long file; return whether it was shortened."""
        size = self._size()
        if size < self._trim_at_bytes:
            return False
        raw, _ = self._read_kept()
        replace_file(self._older, raw, durable=False, folders=False)
        # The process appends, so it continues at the new end. What it wrote since the read is lost.
        os.truncate(self.path, 0)
        self.trimmed_bytes += size
        return True

    def _read_kept(self) -> tuple[bytes, int]:
        """Return the newest bytes, from the start of a line, and the position of the first."""
        end = self.end
        # One extra byte shows whether a line begins right after it.
        raw = _last_bytes(self.path, self._kept_bytes + 1)
        if self.trimmed_bytes and len(raw) <= self._kept_bytes:
            raw = _last_bytes(self._older, self._kept_bytes + 1) + raw
        if (surplus := len(raw) - self._kept_bytes) > 0:
            line = raw.find(b"\n", surplus - 1) + 1
            raw = raw[line or surplus :]
        return raw, end - len(raw)

    def _size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0


def _last_bytes(path: Path, count: int) -> bytes:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - count))
            return file.read(count)
    except FileNotFoundError:
        return b""
