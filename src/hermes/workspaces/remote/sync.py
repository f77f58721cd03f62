"""Synchronizes declared files with a remote machine: skills and credentials to it, results back.
Hashes decide what is copied."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path, PurePosixPath

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.workspaces.remote.calls import RemoteCalls
from hermes.workspaces.remote.files import RemoteFiles
from hermes.workspaces.shell_state import shell_quote

_LARGEST_BYTES = 32 * 1024 * 1024


class SyncedPath(Value):
    """A local file or folder and its remote path. Without `back` it is read-only there, and nothing
    is copied back."""

    near: str
    far: str
    back: bool = False


class SyncResult(Value):
    """Paths on this machine. A file that changed on both sides stays, and the remote version is
    stored beside it with the suffix `.far`."""

    sent: tuple[str, ...] = ()
    fetched: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


class FileSync:
    """`file` stores the hashes of the last synchronization."""

    def __init__(self, calls: RemoteCalls, file: Path) -> None:
        self._calls = calls
        self._files = RemoteFiles(calls)
        self._file = file

    async def send(self, declared: SyncedPath) -> SyncResult:
        """Send what is new or changed here, without overwriting remote changes that are to come
        back."""
        known = self._load_hashes()
        near = await asyncio.to_thread(_local_hashes, declared.near)
        far = await self._remote_hashes(declared.far)
        sent = []
        for name, digest in near.items():
            key = f"{declared.far}\0{name}"
            theirs = far.get(name)
            changed_there = theirs is not None and theirs != known.get(key)
            if theirs != digest and not (declared.back and changed_there and key in known):
                data = await asyncio.to_thread(Path(declared.near, name).read_bytes)
                await self._write(declared, name, data)
                sent.append(str(Path(declared.near, name)))
            if theirs == digest or not (declared.back and changed_there and key in known):
                known[key] = digest
        self._save_hashes(known)
        return SyncResult(sent=tuple(sent))

    async def fetch(self, declared: SyncedPath) -> SyncResult:
        """Fetch what is new or changed there."""
        if not declared.back:
            return SyncResult()
        known = self._load_hashes()
        near = await asyncio.to_thread(_local_hashes, declared.near)
        far = await self._remote_hashes(declared.far)
        fetched: list[str] = []
        conflicts: list[str] = []
        for name, digest in far.items():
            key = f"{declared.far}\0{name}"
            if digest in (near.get(name), known.get(key)):
                continue
            ours = near.get(name)
            clash = ours is not None and ours != known.get(key)
            target = _resolve_inside(declared.near, f"{name}.far" if clash else name)
            data = await self._files.read_bytes(_remote_path(declared.far, name))
            await asyncio.to_thread(_write_local, target, data)
            (conflicts if clash else fetched).append(str(target))
            if not clash:
                known[key] = digest
        self._save_hashes(known)
        return SyncResult(fetched=tuple(fetched), conflicts=tuple(conflicts))

    async def _write(self, declared: SyncedPath, name: str, data: bytes) -> None:
        path = _remote_path(declared.far, name)
        await self._files.write_bytes(path, data)
        mode = "600" if declared.back else "400"
        await self._calls.answer(f"chmod {mode} {shell_quote(path)}")

    async def _remote_hashes(self, root: str) -> dict[str, str]:
        where = shell_quote(root)
        answer = await self._calls.answer(
            f"[[ -e {where} ]] || builtin exit 0; "
            f"find {where} -type f -size -{_LARGEST_BYTES}c -exec sha256sum -z -- {{}} +"
        )
        if answer.code:
            raise ToolError(f"The files at {root} cannot be compared: {answer.errors}")
        found = {}
        for entry in filter(None, answer.out.split(b"\0")):
            digest, _, path = os.fsdecode(entry).partition("  ")
            relative = PurePosixPath(path).relative_to(root)
            found["" if str(relative) == "." else str(relative)] = digest
        return found

    def _load_hashes(self) -> dict[str, str]:
        try:
            return decode(dict[str, str], self._file.read_bytes())
        except (FileNotFoundError, DecodeError):
            return {}

    def _save_hashes(self, known: dict[str, str]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(self._file, encode(known), durable=False)


def _remote_path(root: str, name: str) -> str:
    return str(PurePosixPath(root, name)) if name else root


def _resolve_inside(root: str, name: str) -> Path:
    """Names come from the other side and must not lead out of the folder."""
    if name in ("", ".far"):
        return Path(root + name)
    target = Path(root, name)
    if not Path(os.path.realpath(target)).is_relative_to(os.path.realpath(root)):
        raise ToolError(f"{name} leads out of {root}; it was not fetched.")
    return target


def _local_hashes(root: str) -> dict[str, str]:
    top = Path(root)
    files = [top] if top.is_file() else [path for path in top.rglob("*") if path.is_file()]
    found = {}
    for path in files:
        if not path.is_symlink() and path.stat().st_size < _LARGEST_BYTES:
            name = "" if path == top else str(path.relative_to(top))
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _write_local(target: Path, data: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, data, new=0o666)
