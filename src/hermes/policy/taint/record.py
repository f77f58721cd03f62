"""The append-only record of a home that says when untrusted text could have caused a file to be
written, shared by all processes, and copies of such files on other machines."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

from hermes.codec.file_lock import hold_lock
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value


class Began(Value, tag="began"):
    """Something began that may write files while untrusted text is in view. It lasts until its
    `Ended`, or until the process `owner` is gone."""

    id: str
    at: int  # in nanoseconds since 1970, like times of file systems
    root: str  # files below this folder may be written
    by: tuple[str, ...]  # the sources of the text
    owner: int  # a process id
    names: tuple[str, ...] = ()  # other files that may be written


class Ended(Value, tag="ended"):
    """The period with this id has ended."""

    id: str
    at: int
    names: tuple[str, ...] = ()  # the files that were written meanwhile
    prints: tuple[tuple[int, str], ...] = ()  # sizes and digests of their contents


class Held(Value, tag="held"):
    """Digests of files from periods that were merged."""

    by: tuple[str, ...]
    prints: tuple[tuple[int, str], ...]


class Cleared(Value, tag="cleared"):
    """A person trusts files with this content."""

    digest: str


TaintEntry = Began | Ended | Held | Cleared


L = TypeVar("L", bound=Value)


class Record(Generic[L]):
    """A file of JSON lines of these `kinds`. A line is written before the event that it describes,
    so an incomplete one is ignored. Writers hold a lock, so that none writes into a file that is
    being replaced."""

    def __init__(self, path: Path, kinds: Any) -> None:
        self._path = str(path)
        self._kinds = kinds
        self._identity = (0, 0)
        self._read = 0

    def news(self) -> tuple[bool, list[L]] | None:
        """Return whether the file was replaced, and the lines since the last call (all lines if it
        was); None if nothing was written."""
        try:
            seen = os.stat(self._path)  # noqa: PTH116
        except OSError:
            if not self._read:
                return None
            self._identity, self._read = (0, 0), 0
            return True, []
        identity = (seen.st_dev, seen.st_ino)
        afresh = identity != self._identity or seen.st_size < self._read
        if not afresh and seen.st_size == self._read:
            return None
        start = 0 if afresh else self._read
        try:
            with Path(self._path).open("rb") as file:
                file.seek(start)
                whole = file.read().rpartition(b"\n")
        except OSError:
            return None
        self._identity, self._read = identity, start + len(whole[0]) + len(whole[1])
        found: list[L] = []
        for line in filter(None, whole[0].split(b"\n")):
            with contextlib.suppress(DecodeError):
                found.append(decode(self._kinds, line))
        return afresh, found

    def add(self, lines: Iterable[L], *, safely: bool = False) -> None:
        """Append lines. Blocks. Raises OSError. With `safely`, the lines survive a power
        failure."""
        # An unfinished line must not swallow this one.
        data = b"".join(b"\n" + encode(line) + b"\n" for line in lines)
        with self._open_locked() as descriptor:
            _write(descriptor, data)
            if safely:
                os.fdatasync(descriptor)

    def rewrite(self, lines: Iterable[L], *, while_as_long: int) -> int:
        """Replace all lines, unless another process has added some since `while_as_long` bytes were
        read. Return the length of the file."""
        data = b"".join(encode(line) + b"\n" for line in lines)
        with self._open_locked() as descriptor:
            if os.fstat(descriptor).st_size != while_as_long:
                return while_as_long
            fresh = f"{self._path}.new"
            new = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                _write(new, data)
                os.fdatasync(new)
            finally:
                os.close(new)
            os.replace(fresh, self._path)  # noqa: PTH105
            return len(data)

    @property
    def length(self) -> int:
        """The number of bytes that were read."""
        return self._read

    @contextlib.contextmanager
    def _open_locked(self) -> Iterator[int]:
        with hold_lock(Path(self._path)):
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            descriptor = os.open(self._path, flags, 0o600)
            try:
                yield descriptor
            finally:
                os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


FILE = "suspects_elsewhere.jsonl"
LARGEST = 64 * 1024
LONG = 2 * 1024 * 1024
MOST_FILES = 300


class Copied(Value, tag="copied"):
    """A copy of a tainted file on another machine."""

    place: str
    path: str
    by: tuple[str, ...]
    text: str | None = None  # None before the file was read, and for binary content


class Dropped(Value, tag="dropped"):
    """The file is gone, or its content is trusted now."""

    place: str
    path: str


CopyEntry = Copied | Dropped


class Copies:
    """Copies of the tainted files on one other machine. Answers the same questions as
    `TaintRegistry` does for files of this machine."""

    def __init__(self, path: Path, place: str) -> None:
        self._record: Record[CopyEntry] = Record(path, CopyEntry)
        self._place = place
        self._lock = Lock()
        self._files: dict[tuple[str, str], Copied] = {}

    def exist(self) -> bool:
        return any(place == self._place for place, _ in self._current())

    def sources(self, path: str) -> tuple[str, ...]:
        found = self._current().get((self._place, path))
        return found.by if found else ()

    def names(self, *folders: str) -> tuple[str, ...]:
        inside = tuple(f"{folder.rstrip('/')}/" for folder in folders)
        here = (path for place, path in reversed(self._current()) if place == self._place)
        return tuple(path for path in here if path.startswith(inside))

    def text(self, path: str) -> str | None:
        found = self._current().get((self._place, path))
        return found.text if found else None

    def stamp(self, path: str) -> tuple[str, int, int] | None:
        text = self.text(path)
        return None if text is None else (path, hash(text), len(text))

    def clear(self, paths: Iterable[str]) -> None:
        """Trust the current content of these files."""
        self.drop(paths)

    # Writing. All of it blocks; OSError where the home cannot be written.

    def keep(self, texts: Mapping[str, str | None], by: Iterable[str]) -> None:
        """Store the contents of tainted files. Durable when it returns."""
        sources = tuple(sorted(by))
        self._add(
            Copied(place=self._place, path=path, by=sources, text=text)
            for path, text in texts.items()
        )

    def drop(self, paths: Iterable[str]) -> None:
        known = self._current()
        self._add(
            Dropped(place=self._place, path=path) for path in paths if (self._place, path) in known
        )

    def _add(self, lines: Iterable[CopyEntry]) -> None:
        if entries := tuple(lines):
            self._record.add(entries, safely=True)
            newest = list(self._current().values())[-MOST_FILES:]
            if self._record.length > LONG:
                self._record.rewrite(newest, while_as_long=self._record.length)

    def _current(self) -> dict[tuple[str, str], Copied]:
        with self._lock:
            news = self._record.news()
            if news is not None:
                if news[0]:
                    self._files = {}
                for line in news[1]:
                    # The newest come last.
                    self._files.pop((line.place, line.path), None)
                    if isinstance(line, Copied):
                        self._files[line.place, line.path] = line
            return self._files
