"""One path: its metadata, and its content, which is hashed and copied into the store and back.

Holes stay holes; the kernel copies large files or shares them with reflinks."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import posixpath
import stat
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path

import msgspec

# File systems count time in ticks: a change within one tick of a scan may not show.
TICK_NS = 20_000_000
DIGEST_BYTES = 20
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
CHUNK = 1 << 20
# Larger files are separate objects.
LARGE = 256 * 1024
FICLONE = 0x40049409
HASHED, BY_STAMP, MOVED = b"h", b"s", b"m"

FileId = tuple[int, int]
# A file and the time of its last write: inode numbers are soon reused.
WrittenFile = tuple[int, int, int]


class PathEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One path at one moment. Tens of thousands are created in a row, so it is a bare record."""

    mode: int
    size: int
    modified: int
    changed: int
    inode: int
    device: int
    links: int
    owner: int
    group: int
    blocks: int = 0
    target: bytes = b""  # of a symbolic link
    token: bytes = b""  # identifies the content in the store; b"" when it is not stored
    attributes: tuple[tuple[str, bytes], ...] = ()  # the extended ones
    # It changed so shortly before the scan that its time stamp does not prove that it stayed the
    # same.
    fresh: bool = False

    @property
    def kind(self) -> int:
        return stat.S_IFMT(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def file_id(self) -> FileId:
        return self.device, self.inode

    @property
    def written(self) -> WrittenFile:
        return self.device, self.inode, self.modified

    @property
    def weight(self) -> int:
        """Return its size on disk: holes of a sparse file count nothing."""
        return min(self.size, self.blocks * 512) if self.blocks else self.size


Manifest = dict[str, PathEntry]


def entry_of(path: str, found: os.stat_result, now_ns: int = 0) -> PathEntry:
    target = os.fsencode(Path(path).readlink()) if stat.S_ISLNK(found.st_mode) else b""
    return PathEntry(
        found.st_mode,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_ino,
        found.st_dev,
        found.st_nlink,
        found.st_uid,
        found.st_gid,
        found.st_blocks,
        target,
        b"",
        (),
        abs(now_ns - found.st_ctime_ns) < TICK_NS,
    )


def read_entry(path: str, now_ns: int = 0) -> PathEntry | None:
    """Return what is there now, without following links; None when nothing is there or it is not
    readable."""
    try:
        return entry_of(path, os.lstat(path), now_ns)
    except OSError:
        return None


def read_entry_without_links(path: str) -> PathEntry | None:
    """Return the same as `read_entry`, but None for a path that goes through a symbolic link."""
    folder = posixpath.dirname(path)
    return read_entry(path) if os.path.realpath(folder) == folder else None


def differs(one: PathEntry, other: PathEntry) -> bool:
    """Return whether a user would see a change. Of a folder, only mode and owner count, because its
    content has its own entries. Another hard link only moves the time of the last change."""
    if (one.mode, one.owner, one.group) != (other.mode, other.owner, other.group):
        return True
    if one.is_folder:
        return False
    if one.is_link:
        return one.target != other.target
    if (one.size, one.modified) != (other.size, other.modified):
        return True
    only_links = one.links != other.links and one.inode == other.inode
    return not only_links and (one.file_id, one.changed) != (other.file_id, other.changed)


def digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(dict[str, PathEntry])
_odd_decoder = msgspec.msgpack.Decoder(dict[bytes, PathEntry])
PLAIN, ODD = b"t", b"b"


def pack_manifest(manifest: Mapping[str, PathEntry]) -> bytes:
    """Encode a manifest. Names need not be UTF-8; if one is not, all are stored as bytes."""
    try:
        return PLAIN + _encoder.encode(manifest)
    except UnicodeEncodeError:
        return ODD + _encoder.encode({os.fsencode(p): entry for p, entry in manifest.items()})


def unpack_manifest(raw: bytes) -> Manifest:
    if raw[:1] == PLAIN:
        return _decoder.decode(raw[1:])
    return {os.fsdecode(path): entry for path, entry in _odd_decoder.decode(raw[1:]).items()}


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
