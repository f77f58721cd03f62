"""Protects files that other programs run or read later: hooks, start files, editor settings."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class DirectoryEntry:
    def __init__(self, folder: int, name: str) -> None:
        self._folder = folder
        self._name = name

    @property
    def exists(self) -> bool:
        return self._found is not None

    @property
    def link(self) -> str | None:
        """Return the target of a symbolic link."""
        try:
            return os.readlink(self._name, dir_fd=self._folder)
        except OSError:
            return None

    @property
    def _found(self) -> os.stat_result | None:
        try:
            return os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
        except OSError:
            return None

    def read(self) -> bytes | None:
        """Return the content of a regular file."""
        found = self._found
        if found is None or not stat.S_ISREG(found.st_mode):
            return None
        with os.fdopen(os.open(self._name, _READ, dir_fd=self._folder), "rb") as file:
            return file.read()

    def write(self, data: bytes, mode: int) -> None:
        with os.fdopen(os.open(self._name, _NEW, mode, dir_fd=self._folder), "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)

    def move(self, target: Path) -> None:
        """Move it out of the folder, without permission to execute."""
        try:
            os.rename(self._name, target, src_dir_fd=self._folder)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._copy(target)
        with contextlib.suppress(OSError):
            if target.is_file() and not target.is_symlink():
                target.chmod(0o600)

    def _copy(self, target: Path) -> None:
        # shutil loads several compressors and is rarely needed.
        import shutil

        here = f"/proc/self/fd/{self._folder}/{self._name}"
        found = self._found
        if found is not None and stat.S_ISDIR(found.st_mode):
            shutil.copytree(here, target, symlinks=True)
            shutil.rmtree(self._name, dir_fd=self._folder)
            return
        with contextlib.suppress(OSError, shutil.SpecialFileError):
            shutil.copy2(here, target, follow_symlinks=False)
        os.unlink(self._name, dir_fd=self._folder)


FILES = (
    ".envrc", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
    ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".inputrc", ".gitconfig",
    ".mcp.json", ".vimrc", ".exrc", ".nvimrc", ".gdbinit", ".lldbinit", ".tmux.conf",
    ".git/config", ".git/config.worktree", ".git/commondir",
)  # fmt: skip
FOLDERS = (
    ".git/hooks", ".vscode", ".idea", ".hermes", ".claude", ".codex", ".cursor", ".gemini",
    ".devcontainer", ".config/fish", ".config/autostart", ".config/systemd",
)  # fmt: skip

# Repository settings that name no program: git writes them during ordinary work.
_HARMLESS_SECTIONS = frozenset(
    ("advice", "branch", "color", "commit", "extensions", "fetch", "init", "log", "pull", "push",
     "rebase", "status", "submodule", "tag", "user")
)  # fmt: skip
_HARMLESS_CORE = frozenset(
    ("abbrev", "autocrlf", "bare", "eol", "filemode", "ignorecase", "logallrefupdates", "longpaths",
     "precomposeunicode", "quotepath", "repositoryformatversion", "safecrlf", "sparsecheckout",
     "sparsecheckoutcone", "symlinks", "untrackedcache")
)  # fmt: skip
_HARMLESS_REMOTE = frozenset(
    ("url", "fetch", "mirror", "partialclonefilter", "promisor", "prune", "pushurl", "tagopt")
)
CONFIG = ".git/config"
# Inside a repository that lies elsewhere.
BARE_FILES = ("config", "config.worktree")
BARE_FOLDERS = ("hooks",)
MAX_FILE_BYTES = 1_000_000
MAX_FILES = 500
MAX_FOLDERS = 50
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

# Shows whether a file is unchanged without reading it.
_Mark = tuple[int, ...]
_Kept = tuple[_Mark, bytes]


class ReservedNames:
    """The reserved names of one folder. With `fixed`, existing ones cannot be changed, so only new
    ones matter. `bare` means that the folder is itself a repository."""

    def __init__(
        self, root: str, quarantine: Path, *, fixed: bool = False, bare: bool = False
    ) -> None:
        self._root = Path(root)
        self._quarantine = quarantine
        self._fixed = fixed
        self._files = BARE_FILES if bare else FILES
        self._folders = BARE_FOLDERS if bare else FOLDERS
        self._config = BARE_FILES[0] if bare else CONFIG
        self._is_bare = bare
        self._contents: dict[str, _Kept] = {}

    def watch(self) -> ReservedNamesGuard:
        is_new = not (self._is_bare or (self._root / ".git").exists())
        before = self.marks(keep=True)
        return ReservedNamesGuard(self, before, dict(self._contents), self.links(), is_new)

    def marks(self, *, keep: bool) -> dict[str, _Mark]:
        """Return marks of all existing reserved names. With `keep`, also store their contents,
        which are read only when a file has changed."""
        found: dict[str, _Mark] = {}
        for name in self._existing():
            mark: _Mark = ()
            if not self._fixed:
                path = self._root / name
                try:
                    seen = path.lstat()
                    mark = (stat.S_IMODE(seen.st_mode), seen.st_ino, seen.st_mtime_ns, seen.st_size)
                    regular = stat.S_ISREG(seen.st_mode) and seen.st_size <= MAX_FILE_BYTES
                    if keep and regular and self._contents.get(name, ((), b""))[0] != mark:
                        self._contents[name] = (mark, path.read_bytes())
                except FileNotFoundError:
                    continue
            found[name] = mark
            if len(found) >= MAX_FILES:
                break
        return found

    def restore(self, name: str, kept: _Kept | None, links: Mapping[str, str]) -> None:
        """Quarantine the present file and restore the old one. A new repository keeps its settings
        except those that name programs. `links` existed before."""
        folder = self._folder_of(name, links, make=kept is not None)
        if folder is None:
            return
        try:
            entry = DirectoryEntry(folder, name.rpartition("/")[2])
            if kept is None and name == self._config and (data := entry.read()) is not None:
                lines = [f"{line}\n" for _, line, harmless in _lines(data) if harmless]
                kept = ((0o644,), "".join(lines).encode())
            if entry.exists:
                entry.move(self._quarantine_path(name))
            if kept:
                mark, data = kept
                entry.write(data, mark[0])
        finally:
            os.close(folder)

    def _folder_of(self, name: str, links: Mapping[str, str], *, make: bool) -> int | None:
        """Open the folder of a name step by step. A link that a command has put in the way is
        quarantined, so that nothing happens at its target."""
        way = name.split("/")[:-1]
        descriptor = os.open(self._root, _FOLDER)
        try:
            for step, part in enumerate(way):
                entry, above = DirectoryEntry(descriptor, part), "/".join(way[: step + 1])
                if entry.link is not None and entry.link != links.get(above):
                    entry.move(self._quarantine_path(above))
                if make and not entry.exists:
                    os.mkdir(part, dir_fd=descriptor)
                flags = _FOLDER if entry.link is not None else _FOLDER | os.O_NOFOLLOW
                inner = os.open(part, flags, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
        except (FileNotFoundError, NotADirectoryError):
            os.close(descriptor)
            return None
        return descriptor

    def links(self) -> dict[str, str]:
        """Return the targets of folders with reserved names that are links."""
        found = {}
        for name in {each.partition("/")[0] for each in (*self._files, *self._folders)}:
            with contextlib.suppress(OSError):
                found[name] = str((self._root / name).readlink())
        return found

    def is_ordinary(self, name: str, before: _Kept | None, *, new_repository: bool) -> bool:
        """Return whether git itself makes such a change: branches, remotes and names in its
        settings, and sample hooks in a new repository."""
        path = self._root / name
        if name == self._config and path.is_file() and not path.is_symlink():
            # No new program is named.
            old = _unsafe_settings(before[1] if before else b"")
            return _unsafe_settings(path.read_bytes()) <= old
        if not new_repository or path.is_symlink():
            return False
        if path.is_dir():
            return name == ".git/hooks" and all(p.suffix == ".sample" for p in path.iterdir())
        return name.startswith(".git/hooks/") and name.endswith(".sample")

    def _existing(self) -> Iterator[str]:
        """List two folders only: this runs before each command."""
        there = {*_names(str(self._root)), *(f".git/{n}" for n in _names(f"{self._root}/.git"))}
        there |= {f".config/{n}" for n in _names(f"{self._root}/.config")}
        yield from (name for name in self._files if name in there)
        for name in self._folders:
            if name not in there:
                continue
            folder = self._root / name
            if self._fixed or not folder.is_dir() or folder.is_symlink():
                yield name
            else:
                yield from _files_below(str(folder), name)

    def _quarantine_path(self, name: str) -> Path:
        self._quarantine.mkdir(parents=True, exist_ok=True, mode=0o700)
        number = len(list(self._quarantine.iterdir()))
        return self._quarantine / f"{number:04}-{name.replace('/', '-')}"


class ReservedNamesGuard(NamedTuple):
    """The reserved names as they were before one command. `new_repository` means that there was no
    repository yet."""

    reserved: ReservedNames
    before: dict[str, _Mark]
    contents: dict[str, _Kept]
    links: dict[str, str]
    new_repository: bool

    def differences(self) -> list[str]:
        """Return the names that the command created, changed or removed. What git itself does is
        left out, unless a link leads elsewhere now."""
        before, now = self.before, self.reserved.marks(keep=False)
        changed = [n for n in sorted(before.keys() | now.keys()) if before.get(n) != now.get(n)]
        links = self.reserved.links() if changed else {}
        return [
            name
            for name in changed
            if links.get(first := name.partition("/")[0]) != self.links.get(first)
            or not self.reserved.is_ordinary(
                name, self._content(name), new_repository=self.new_repository
            )
        ]

    def undo(self) -> list[str]:
        """Restore them and return those that were restored. The versions of the command are in
        quarantine."""
        names = self.differences()
        for name in names:
            self.reserved.restore(name, self._content(name), self.links)
        return names

    def _content(self, name: str) -> _Kept | None:
        return self.contents.get(name) if name in self.before else None


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []


def _files_below(folder: str, name: str) -> Iterator[str]:
    """List files in order of name, one folder after the other, up to a limit: the settings of an
    editor may contain whole programs."""
    waiting = [(folder, name)]
    for _ in range(MAX_FOLDERS):
        if not waiting:
            return
        path, prefix = waiting.pop()
        try:
            with os.scandir(path) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, f"{prefix}/{entry.name}"))
            else:
                yield f"{prefix}/{entry.name}"


def _unsafe_settings(settings: bytes) -> set[tuple[str, str]]:
    """Return the settings that are not known to be harmless, as section and line."""
    return {(section, line) for section, line, harmless in _lines(settings) if not harmless}


def _lines(settings: bytes) -> Iterator[tuple[str, str, bool]]:
    """Return section, line and whether it is harmless; section headers are lines too."""
    section = ""
    for line in settings.decode("utf-8", "replace").splitlines():
        line = line.strip()
        if line.startswith("["):
            head, bracket, line = line.partition("]")
            section = head[1:].split()[0].lower() if head[1:].strip() else "?"
            yield section, head + bracket, True
            line = line.strip()
        if line and not line.startswith(("#", ";")):
            key = line.split("=")[0].strip().lower()
            harmless = section in _HARMLESS_SECTIONS
            if section == "core":
                harmless = key in _HARMLESS_CORE
            elif section == "remote":
                harmless = key in _HARMLESS_REMOTE and "::" not in line
            yield section, line, harmless and not (line.endswith("\\") or "!" in line)
