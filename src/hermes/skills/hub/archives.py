"""Unpacks archives in memory, with size limits and without links."""

from __future__ import annotations

import zipfile
from io import BytesIO

from hermes.core.errors import HermesError, UsageError
from hermes.skills.files import Tree, safe_member
from hermes.skills.skill import MAIN

MOST_FILES = 200
MOST_FILE_BYTES = 5 * 1024 * 1024
MOST_BYTES = 20 * 1024 * 1024
_KIND = 0o170000
_LINK = 0o120000


def unpack(data: bytes) -> Tree:
    """Returns the files in the archive's skill folder. HermesError for a malformed or malicious
    archive."""
    if data[:2] == b"PK":
        return _skill_folder(_zip(data))
    return _skill_folder(_tar(data))


def _zip(data: bytes) -> Tree:
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            members = [each for each in archive.infolist() if not each.is_dir()]
            _check(len(members), sum(each.file_size for each in members))
            found: Tree = {}
            for each in members:
                if (each.external_attr >> 16) & _KIND == _LINK:
                    raise HermesError(f"The archive contains a link ({each.filename}); refused.")
                with archive.open(each) as file:
                    found[_member(each.filename)] = _read(file.read(MOST_FILE_BYTES + 1))
                _check(len(found), sum(map(len, found.values())))
            return found
    except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise HermesError(f"The archive cannot be read ({error}).") from error


def _tar(data: bytes) -> Tree:
    # Loaded late: few sources use tar.
    import tarfile
    import zlib

    try:
        with tarfile.open(fileobj=BytesIO(data), mode="r:*") as archive:
            found: Tree = {}
            for each in archive:
                if each.isdir():
                    continue
                if not each.isfile():
                    raise HermesError(f"The archive contains a link ({each.name}); refused.")
                if each.size > MOST_FILE_BYTES:
                    raise HermesError(f"{each.name} is too large.")
                file = archive.extractfile(each)
                found[_member(each.name)] = file.read() if file else b""
                _check(len(found), sum(map(len, found.values())))
            return found
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise HermesError(f"The archive cannot be read ({error}).") from error


def _member(name: str) -> str:
    try:
        return safe_member(name.removeprefix("./"))
    except UsageError as error:
        raise HermesError(f"The archive contains an unsafe path ({name!r}); refused.") from error


def _read(data: bytes) -> bytes:
    # Declared sizes may be false.
    if len(data) > MOST_FILE_BYTES:
        raise HermesError("A file of the archive is too large.")
    return data


def _check(files: int, size: int) -> None:
    if files > MOST_FILES or size > MOST_BYTES:
        raise HermesError(f"The archive is too large: {files} files, {size} bytes.")


def _skill_folder(tree: Tree) -> Tree:
    mains = sorted((name for name in tree if name.split("/")[-1] == MAIN), key=len)
    if not mains:
        raise HermesError(f"The archive has no {MAIN}.")
    root = mains[0].removesuffix(MAIN)
    return {name[len(root) :]: data for name, data in tree.items() if name.startswith(root)}
