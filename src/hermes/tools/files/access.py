"""Resolves and reads files, and tracks what the model has seen of them."""

from __future__ import annotations

import difflib
import hashlib
import posixpath
import re
from typing import Literal

from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.core.ports import FileInfo, Workspace
from hermes.core.tools import PathContext

# Reading these never ends, waits for a person, or takes bytes from another reader.
_DEVICE = re.compile(
    r"/dev/(?!shm/)"
    r"|/proc/[^/]+/(task/[^/]+/)?fd(/|$)"
    r"|/proc/(kmsg|kcore)$"
    r"|/sys/kernel/(debug|tracing)/.*pipe"
)
_IMAGES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"BM.{4}\0\0\0\0", re.DOTALL), "image/bmp"),
    (re.compile(rb"II\*\0|MM\0\*"), "image/tiff"),
    (re.compile(rb"\0\0\x01\0[^\0]\0"), "image/x-icon"),
    (re.compile(rb"....ftyp(avif|avis)", re.DOTALL), "image/avif"),
    (re.compile(rb"....ftyp(heic|heix|mif1)", re.DOTALL), "image/heic"),
)
# Plain text with these extensions would be a file that no program opens.
OFFICE_SUFFIXES = (".docx", ".xlsx", ".pptx", ".odt", ".ods", ".pdf")


def is_device(path: str) -> bool:
    return _DEVICE.match(path) is not None


def image_type(data: bytes) -> str:
    """Return the media type of an image, or ""."""
    return next((kind for magic, kind in _IMAGES if magic.match(data)), "")


def suffix(path: str) -> str:
    """Return the lower-case extension of a file name, with its dot."""
    name = path.rsplit("/", 1)[-1]
    stem, dot, ending = name.rpartition(".")
    return f".{ending.lower()}" if dot and stem else ""


# Larger files are searched instead of read.
MAX_FILE_BYTES = 32 * 1024 * 1024
_SIMILAR = 5


class LocatedFile(Value):
    """A file that a tool call names. `path` is absolute; `info` is None when nothing is there."""

    path: str
    info: FileInfo | None


async def locate(workspace: Workspace, path: str) -> LocatedFile:
    """Resolve a path and look at it; raise ToolError if something other than a file is there."""
    real = resolve_path(workspace, path)
    info = await workspace.stat(real)
    if info is not None and info.kind == "folder":
        raise ToolError(f"{path} is a folder. To list it use search_files with target='files'.")
    if info is not None and info.kind != "file":
        raise ToolError(f"{path} is not a regular file; reading or writing it could hang.")
    return LocatedFile(path=real, info=info)


def resolve_path(where: PathContext, path: str) -> str:
    """Return the absolute path; raise ToolError for devices, however they are reached."""
    if not path.strip():
        raise ToolError("path is empty; name a file.")
    if "\0" in path:
        raise ToolError("A path cannot contain a NUL character.")
    # Checked before links are followed: links in /dev and /proc lead anywhere.
    plain = posixpath.normpath(posixpath.join(where.cwd, path))
    if is_device(plain) or is_device(real := where.resolve(path)):
        raise ToolError(f"{path} is a device or a process stream, not a file.")
    return real


def resolve_if_valid(where: PathContext, path: str) -> tuple[str, ...]:
    """Resolve a path for effects. Return nothing when the call will be refused anyway."""
    try:
        return (resolve_path(where, path),)
    except ToolError:
        return ()


async def load(workspace: Workspace, path: str, info: FileInfo) -> bytes:
    if info.size > MAX_FILE_BYTES:
        raise ToolError(
            f"{path} has {info.size:,} bytes, too many to read. Use search_files, or terminal "
            "with sed -n '1,200p'."
        )
    return await workspace.read_bytes(path)


async def similar_files(workspace: Workspace, path: str) -> tuple[str, ...]:
    """Return files in the same folder with similar names, best first."""
    folder, wanted = posixpath.split(path)
    try:
        entries = await workspace.list_folder(folder)
    except ToolError:
        return ()
    names = {posixpath.basename(each.path): each.path for each in entries if each.kind == "file"}
    small = wanted.lower()
    stem = small.rsplit(".", 1)[0]
    ranked = [name for name in names if name.lower() == small]
    ranked += difflib.get_close_matches(wanted, names, n=_SIMILAR, cutoff=0.6)
    ranked += sorted(name for name in names if stem and name.lower().startswith(stem))
    return tuple(names[name] for name in list(dict.fromkeys(ranked))[:_SIMILAR])


Knowledge = Literal["none", "whole", "part", "outdated"]


def digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


class SeenFile:
    """What the model knows of one file: the content, and which of its lines it has seen."""

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
    """What the model knows of each file. It is kept while a session is open; after a restart, files
    are read again."""

    records_model_view = True

    def __init__(self) -> None:
        self._seen: dict[str, SeenFile] = {}
        self._repeats: dict[tuple[str, int, int], tuple[bytes, int]] = {}
        self._misses: dict[str, int] = {}

    def on_compaction(self) -> None:
        """After a compaction, content may no longer be in the context, so show it again on request.
        The model still counts as having seen it."""
        self._repeats.clear()

    def count_request(self, path: str, offset: int, limit: int, content: bytes) -> int:
        """Return how often these lines of this content were requested."""
        before, times = self._repeats.get((path, offset, limit), (b"", 0))
        times = times + 1 if before == content else 1
        self._repeats[(path, offset, limit)] = (content, times)
        return times

    def record_read(self, path: str, content: bytes, *, start: int, stop: int, total: int) -> None:
        """Record that the model received the lines from `start` up to `stop`."""
        seen = self._seen.get(path)
        if seen is None or seen.content != content:
            seen = self._seen[path] = SeenFile(content, total)
        seen.add(start, stop)
        self._misses.pop(path, None)

    def record_write(self, path: str, content: bytes) -> None:
        """Record that the model itself wrote the whole content."""
        self._seen[path] = seen = SeenFile(content, 0)
        seen.add(1, 1)

    def record_edit(self, path: str, before: bytes, after: bytes) -> None:
        """Record that the model changed a part; its knowledge of the rest stays."""
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
