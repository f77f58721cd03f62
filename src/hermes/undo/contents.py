"""Copies file contents into the store and back. Holes stay holes, and large files are copied by the
kernel or shared with reflinks."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from hermes.undo.entry import DIGEST_BYTES, PathEntry, digest

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
CHUNK = 1 << 20
# Larger files are separate objects.
LARGE = 256 * 1024
FICLONE = 0x40049409
HASHED, BY_STAMP, MOVED = b"h", b"s", b"m"


def stamp_token(kind: bytes, entry: PathEntry) -> bytes:
    """Identify content that is too large to read by the metadata of the file."""
    numbers = (entry.device, entry.inode, entry.size, entry.modified, entry.changed)
    return kind + digest(repr(numbers).encode())


def text_token(data: bytes) -> bytes:
    return HASHED + digest(data)


def attributes_of(descriptor: int) -> tuple[tuple[str, bytes], ...]:
    """Return the readable extended attributes."""
    try:
        names = os.listxattr(descriptor)
        return tuple((name, os.getxattr(descriptor, name)) for name in names)
    except OSError:
        return ()


def read_whole(descriptor: int, size: int) -> bytes:
    """Read to the end, also of a file that grows meanwhile."""
    data = os.read(descriptor, size + 1)
    if len(data) == size:
        return data
    parts = [data]
    while more := os.read(descriptor, CHUNK):
        parts.append(more)
    return b"".join(parts)


def extents(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Return the data ranges of a file, as (start, end)."""
    at = 0
    while at < size:
        try:
            start = os.lseek(descriptor, at, os.SEEK_DATA)
            end = os.lseek(descriptor, start, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            start, end = at, size
        yield start, min(end, size)
        at = end


def present_token(path: str) -> bytes:
    """Return the token of the present content; b"" when it cannot be read."""
    try:
        with open_file(path) as descriptor:
            size = os.fstat(descriptor).st_size
            if size <= LARGE:
                return text_token(read_whole(descriptor, size))
            return hash_content(descriptor, size)
    except OSError:
        return b""


def hash_content(source: int, size: int, target: int = -1) -> bytes:
    """Return the token of the content; with a target, also copy what is not a hole."""
    made = blake2b(digest_size=DIGEST_BYTES)
    for start, end in extents(source, size):
        made.update(b"%d:" % start)
        at = start
        for piece in _pieces(source, start, end):
            made.update(piece)
            if target >= 0:
                at += os.pwrite(target, piece, at)
    if target >= 0:
        os.ftruncate(target, size)
    made.update(b"=%d" % size)
    return HASHED + made.digest()


def copy_content(source: int, target: int, size: int) -> None:
    """Make the cheapest copy that the file system supports: a reflink, else a copy by the
    kernel."""
    if try_reflink(source, target):
        return
    os.ftruncate(target, 0)
    for start, end in extents(source, size):
        _copy_range(source, target, start, end)
    os.ftruncate(target, size)


def try_reflink(source: int, target: int) -> bool:
    """Return whether the target now shares the bytes of the source."""
    try:
        fcntl.ioctl(target, FICLONE, source)
    except OSError:
        return False
    return True


def _copy_range(source: int, target: int, start: int, end: int) -> None:
    while start < end:
        try:
            done = os.copy_file_range(source, target, end - start, start, start)
        except OSError:
            break
        if not done:
            return
        start += done
    for piece in _pieces(source, start, end):
        start += os.pwrite(target, piece, start)


def _pieces(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    while start < end and (piece := os.pread(descriptor, min(CHUNK, end - start), start)):
        yield piece
        start += len(piece)


@contextlib.contextmanager
def open_file(path: str | Path, flags: int = READ) -> Iterator[int]:
    descriptor = os.open(path, flags, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
