"""Tracks what the model has seen of files in this session, so that nothing is shown twice and
unseen content is not overwritten silently."""

from __future__ import annotations

import hashlib
from typing import Literal

Knowledge = Literal["none", "whole", "part", "outdated"]


def digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


class SeenFile:
    """The content of one file that the model knows, and which of its lines."""

    def __init__(self, content: bytes, total: int) -> None:
        self.content = content
        self.total = total
        self.ranges: list[tuple[int, int]] = []

    def add(self, start: int, stop: int) -> None:
        joined = [(start, stop)]
        for low, high in self.ranges:
            first, last = joined[0]
            if high < first or last < low:
                joined.append((low, high))
            else:
                joined[0] = (min(low, first), max(high, last))
        self.ranges = joined

    @property
    def whole(self) -> bool:
        return (1, self.total + 1) in self.ranges


class ReadLog:
    """Kept while a session is open; after a restart, files are simply read again."""

    def __init__(self) -> None:
        self._seen: dict[str, SeenFile] = {}
        self._repeats: dict[tuple[str, int, int], tuple[bytes, int]] = {}
        self._misses: dict[str, int] = {}

    def forget(self) -> None:
        """What was read is no longer in the context."""
        self._seen.clear()
        self._repeats.clear()

    def on_compaction(self) -> None:
        """What was read may no longer be in the context, so it is shown again on request. The model
        still counts as having seen it."""
        self._repeats.clear()

    def count_request(self, path: str, offset: int, limit: int, content: bytes) -> int:
        """Return how often these lines of this content were requested."""
        before, times = self._repeats.get((path, offset, limit), (b"", 0))
        times = times + 1 if before == content else 1
        self._repeats[(path, offset, limit)] = (content, times)
        return times

    def record_read(self, path: str, content: bytes, *, start: int, stop: int, total: int) -> None:
        """The model received the lines from `start` up to `stop`."""
        seen = self._seen.get(path)
        if seen is None or seen.content != content:
            seen = self._seen[path] = SeenFile(content, total)
        seen.add(start, stop)
        self._misses.pop(path, None)

    def record_write(self, path: str, content: bytes) -> None:
        """The model itself wrote the whole content."""
        self._seen[path] = seen = SeenFile(content, 0)
        seen.add(1, 1)

    def record_edit(self, path: str, before: bytes, after: bytes) -> None:
        """The model changed a part; its knowledge of the rest stays."""
        seen = self._seen.get(path)
        if seen is None:
            return
        if seen.content != before:
            seen.ranges = []
        seen.content = after

    def record_delete(self, path: str) -> None:
        self._seen.pop(path, None)

    def knowledge(self, path: str, content: bytes) -> Knowledge:
        """Return how well the model knows the present content."""
        seen = self._seen.get(path)
        if seen is None:
            return "none"
        if seen.content != content:
            return "outdated"
        return "whole" if seen.whole else "part"

    def count_miss(self, path: str) -> int:
        """Count a text that was not found in the file since it was read."""
        self._misses[path] = self._misses.get(path, 0) + 1
        return self._misses[path]

    def reset_misses(self, path: str) -> None:
        self._misses.pop(path, None)
