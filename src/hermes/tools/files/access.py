"""Resolves a path from the model to a file and reads it, with advice on errors."""

from __future__ import annotations

import difflib
import posixpath

from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.core.ports import FileInfo, Workspace
from hermes.core.tools import PathContext
from hermes.tools.files.kinds import is_device

# Larger files are searched instead of read.
MAX_FILE_BYTES = 32 * 1024 * 1024
_SIMILAR = 5


class LocatedFile(Value):
    """`path` is absolute; `info` is None when nothing is there."""

    path: str
    info: FileInfo | None


async def locate(workspace: Workspace, path: str) -> LocatedFile:
    """Resolve a path and look at it; ToolError unless it is a file or nothing."""
    real = resolve_path(workspace, path)
    info = await workspace.stat(real)
    if info is not None and info.kind == "folder":
        raise ToolError(f"{path} is a folder. To list it use search_files with target='files'.")
    if info is not None and info.kind != "file":
        raise ToolError(f"{path} is not a regular file; reading or writing it could hang.")
    return LocatedFile(path=real, info=info)


def resolve_path(where: PathContext, path: str) -> str:
    """Return the absolute path; ToolError for devices, however they are reached."""
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
    """For effects: empty when the call will be refused anyway."""
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
