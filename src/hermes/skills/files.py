"""Validates, reads and atomically replaces the folders of skills."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath

from hermes.codec.atomic_files import sync_folder, write_new
from hermes.codec.file_lock import hold_lock
from hermes.core.errors import UsageError
from hermes.core.world import no_kill_point
from hermes.skills.discovery import SkillEntry
from hermes.skills.skill import MAIN, MOST_FILE_BYTES, SUPPORT, Skill

_EXCHANGE = 2
_HERE = -100

Tree = dict[str, bytes]
"""File contents by relative POSIX path."""


def lock_skills(folder: Path) -> AbstractContextManager[bool]:
    """Lock the skills folder against other processes."""
    return hold_lock(folder / ".lock")


def read_tree(folder: Path) -> Tree:
    """Return all regular files; links and hidden files are not part of a version."""
    files: Tree = {}
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_ignored(Path(where, name))]
        for name in names:
            path = Path(where, name)
            if not _is_ignored(path) and path.is_file():
                files[path.relative_to(folder).as_posix()] = path.read_bytes()
    return files


def _is_ignored(path: Path) -> bool:
    return path.name.startswith(".") or path.name == "__pycache__" or path.is_symlink()


def content_hash(tree: Mapping[str, bytes]) -> str:
    whole = hashlib.sha256()
    for name in sorted(tree):
        whole.update(f"{name}\0{hashlib.sha256(tree[name]).hexdigest()}\n".encode())
    return whole.hexdigest()


def folder_hash(folder: str | Path) -> str:
    return content_hash(read_tree(Path(folder)))


def safe_member(path: str) -> str:
    """Return the path. Raises UsageError if it is not a valid relative path."""
    plain = PurePosixPath(path)
    wrong = (
        not path
        or "\\" in path
        or "\0" in path
        or path.startswith(("/", "~"))
        or path[1:2] == ":"
        or any(part in ("..", ".") or part.startswith(".") for part in path.split("/"))
        or str(plain) != path
        or len(path) > 240
    )
    if wrong:
        raise UsageError(f"{path!r} is not a valid path inside a skill.")
    return path


def resolve_inside(folder: Path, path: str) -> Path:
    """Return the path with links resolved. Raises UsageError when it leads outside the skill."""
    real = (folder / safe_member(path)).resolve()
    if not real.is_relative_to(folder.resolve()):
        raise UsageError(f"{path!r} is outside the skill; use a path inside it.")
    return real


def replace_folder(
    target: Path,
    tree: Mapping[str, bytes],
    staging: Path,
    *,
    kill_point: Callable[[str], None] = no_kill_point,
    durable: bool = True,
) -> None:
    """Replace the content of `target` atomically, also across a crash. Hidden files, links and
    executable bits of the old folder are kept."""
    # Slow to load, and most runs replace no folder.
    import shutil

    staging.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = staging / f"{target.name}.{os.urandom(4).hex()}"
    try:
        _fill(fresh, tree, target, durable=durable)
        kill_point("skill.staged")
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if target.exists():
            swap_folders(fresh, target)
        else:
            fresh.rename(target)
        kill_point("skill.swapped")
        if durable:
            sync_folder(target.parent)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _fill(fresh: Path, tree: Mapping[str, bytes], old: Path, *, durable: bool) -> None:
    import shutil

    if old.exists():
        kept = set(read_tree(old))
        shutil.copytree(
            old,
            fresh,
            symlinks=True,
            ignore=lambda where, names: [
                name for name in names if str(Path(where, name).relative_to(old)) in kept
            ],
        )
    fresh.mkdir(exist_ok=True, mode=0o700)
    for name, data in tree.items():
        path = fresh / safe_member(name)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_new(path, data, durable=durable)
        before = old / name
        runs = before.stat().st_mode & 0o111 if before.is_file() else 0
        path.chmod(0o644 | runs)
    for folder in sorted((each for each in fresh.rglob("*") if each.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()
    if durable:
        sync_folder(fresh)


def swap_folders(first: Path, second: Path) -> None:
    """Swap two folders, atomically where the system supports it."""
    # Only needed to replace a folder.
    import ctypes

    swap = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    names = (os.fsencode(first), os.fsencode(second))
    if swap is not None and swap(_HERE, names[0], _HERE, names[1], _EXCHANGE) == 0:
        return
    away = first.with_name(f"{first.name}.old")
    second.rename(away)
    first.rename(second)
    away.rename(first)


def remove_folder(target: Path, staging: Path) -> None:
    """Remove a folder: renames it away first, then delete it."""
    import shutil

    staging.mkdir(parents=True, exist_ok=True, mode=0o700)
    gone = staging / f"{target.name}.{os.urandom(4).hex()}"
    target.rename(gone)
    sync_folder(target.parent)
    shutil.rmtree(gone, ignore_errors=True)


MOST_FILES = 200
MOST_BYTES = 20 * 1024 * 1024
ALIKE = 0.75
_COMMON = frozenset(
    "a an and are as at be by do for from how in into is it of on or that the this to use using "
    "when with you your".split()
)


def check_tree(before: Mapping[str, bytes], after: Mapping[str, bytes], *, strict: bool) -> None:
    """Raises UsageError for invalid files. With `strict`, new files must be in the support
    folders."""
    if MAIN not in after:
        raise UsageError(f"The skill has no {MAIN}; add one.")
    try:
        after[MAIN].decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{MAIN} is not UTF-8 text.") from error
    if len(after) > MOST_FILES or sum(map(len, after.values())) > MOST_BYTES:
        raise UsageError(f"A skill may have at most {MOST_FILES} files and {MOST_BYTES} bytes.")
    for name, data in after.items():
        safe_member(name)
        if name == MAIN or before.get(name) == data:
            continue
        if len(data) > MOST_FILE_BYTES and strict:
            raise UsageError(f"{name} is larger than {MOST_FILE_BYTES} bytes; shorten it.")
        if strict:
            check_support(name)


def check_support(path: str) -> str:
    """Return the path. Raises UsageError if no support file may be written there."""
    folder, _, rest = safe_member(path).partition("/")
    if folder not in SUPPORT or not rest:
        raise UsageError(f"Files of a skill must be in {', '.join(SUPPORT)}, not {path!r}.")
    return path


def find_duplicate(skill: Skill, entries: Sequence[SkillEntry]) -> str:
    """Return the name of a similar skill, or ""."""
    keywords = _keywords(skill)
    for entry in entries:
        other_keywords = _keywords(entry.skill)
        together = len(keywords | other_keywords)
        if together and len(keywords & other_keywords) / together >= ALIKE:
            return entry.name
    return ""


def _keywords(skill: Skill) -> frozenset[str]:
    text = f"{skill.name} {skill.description}".lower()
    return frozenset(re.findall(r"[^\W_]+", text)) - _COMMON
