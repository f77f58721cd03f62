"""Reads and writes MEMORY.md and USER.md."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from hermes.codec.values import Value
from hermes.codec.whole_files import replace_file
from hermes.memory.entries import OWNER, Target
from hermes.memory.format import FILE_NAMES, join_entries

NOTHING = b"-"


class FileContent(Value):
    """Content of a file; `whole` is False when it is not valid UTF-8."""

    text: str
    digest: bytes
    whole: bool = True


class MemoryFiles:
    """The files of one person: in `folder` for the owner, in a subfolder for others."""

    def __init__(self, folder: Path, scope: str) -> None:
        self._folder = folder if scope == OWNER else folder / "people" / _folder_name(scope)

    def path(self, target: Target) -> Path:
        return self._folder / FILE_NAMES[target]

    def read(self, target: Target) -> FileContent | None:
        """Returns None when there is no file."""
        try:
            raw = self.path(target).read_bytes()
        except FileNotFoundError:
            return None
        text = raw.decode("utf-8", "replace")
        return FileContent(text=text, digest=digest(raw), whole=text.encode() == raw)

    def write(self, target: Target, texts: list[str]) -> None:
        replace_file(self.path(target), encode_entries(texts))

    def keep_copy(self, target: Target, now: float) -> Path:
        """Writes a backup beside the file."""
        path = self.path(target)
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
        copy = path.with_name(f"{path.name}.bak.{stamp}")
        copy.write_bytes(path.read_bytes())
        copy.chmod(0o600)
        return copy


def encode_entries(texts: list[str]) -> bytes:
    return (join_entries(texts) + "\n" if texts else "").encode()


def digest(raw: bytes) -> bytes:
    return blake2b(raw, digest_size=16).digest()


@contextmanager
def lock_memory(folder: Path) -> Iterator[None]:
    """Locks the folder against other processes."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _folder_name(scope: str) -> str:
    """Maps a person's name to a unique folder name."""
    return "".join(c if c.isalnum() and c.isascii() else f"%{ord(c):x}." for c in scope)
