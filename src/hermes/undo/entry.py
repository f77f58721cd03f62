"""The metadata of a path, and the token of its stored content."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

import msgspec

# File systems count time in ticks: a change within one tick of a scan may not show.
TICK_NS = 20_000_000
DIGEST_BYTES = 20

FileId = tuple[int, int]
# A file and the time of its last write: inode numbers are soon reused.
WrittenFile = tuple[int, int, int]


class PathEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One path at one moment. Tens of thousands are created in a row, so it is a bare record.
    `token` identifies the content in the store, b"" when it is not stored. `target` is the target
    of a symbolic link; `attributes` are the extended ones. An entry is `fresh` when it changed so
    shortly before the scan that its time stamp does not prove that it stayed the same."""

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
    target: bytes = b""
    token: bytes = b""
    attributes: tuple[tuple[str, bytes], ...] = ()
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
    """Return what is there now, without following links; None when nothing is, or it is not
    readable."""
    try:
        return entry_of(path, os.lstat(path), now_ns)
    except OSError:
        return None


def read_entry_without_links(path: str) -> PathEntry | None:
    """Like `read_entry`, but None for a path that goes through a symbolic link."""
    folder = posixpath.dirname(path)
    return read_entry(path) if os.path.realpath(folder) == folder else None


def differs(one: PathEntry, other: PathEntry) -> bool:
    """Return whether a user would see a change. A folder is its mode and owner: its content has its
    own entries. Another hard link only moves the time of the last change."""
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
    """Names need not be UTF-8; if one is not, all are stored as bytes."""
    try:
        return PLAIN + _encoder.encode(manifest)
    except UnicodeEncodeError:
        return ODD + _encoder.encode({os.fsencode(p): entry for p, entry in manifest.items()})


def unpack_manifest(raw: bytes) -> Manifest:
    if raw[:1] == PLAIN:
        return _decoder.decode(raw[1:])
    return {os.fsdecode(path): entry for path, entry in _odd_decoder.decode(raw[1:]).items()}
