"""Names in a workspace that other programs obey later, outside: hooks, start files, settings of
editors and agents. A confined command does not get to write them, also where they are missing."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

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

# What a new repository may come with, since making one is ordinary work.
_HARMLESS_SECTIONS = frozenset(("core", "remote", "branch", "user", "init", "pull", "push"))
_HARMLESS_CORE = frozenset(
    ("repositoryformatversion", "filemode", "bare", "logallrefupdates", "symlinks", "ignorecase",
     "precomposeunicode")
)  # fmt: skip
MAX_FILE_BYTES = 1_000_000
MAX_FILES = 500

# What tells whether a file is still the same, without reading it.
_Mark = tuple[int, ...]
_Kept = tuple[_Mark, bytes]


class Reserved:
    """The reserved names of one folder. `fixed` says that those which exist cannot be changed
    anyhow, so that only new ones are of interest."""

    def __init__(self, root: str, quarantine: Path, *, fixed: bool) -> None:
        self._root = Path(root)
        self._quarantine = quarantine
        self._fixed = fixed
        self._contents: dict[str, _Kept] = {}

    def watch(self) -> Guard:
        had_repository = (self._root / ".git").exists()
        before = self.marks(keep=True)
        return Guard(self, before, dict(self._contents), had_repository=had_repository)

    def marks(self, *, keep: bool) -> dict[str, _Mark]:
        """Of all reserved names that are there; their contents are kept if wanted."""
        found: dict[str, _Mark] = {}
        for path in self._existing():
            name = str(path.relative_to(self._root))
            found[name] = () if self._fixed else self._marked(name, path, keep=keep)
            if len(found) >= MAX_FILES:
                break
        return found

    def put_back(self, name: str, kept: _Kept | None) -> None:
        """Set aside what is there now, and restore what was."""
        path = self._root / name
        if os.path.lexists(path):
            self._set_aside(path, name)
        if kept:
            mark, data = kept
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(mark[0])

    def is_ordinary(self, name: str) -> bool:
        """In a new repository: what git puts there by itself."""
        path = self._root / name
        if path.is_symlink():
            return False
        if path.is_dir():
            return name == ".git/hooks" and all(p.suffix == ".sample" for p in path.iterdir())
        if name.startswith(".git/hooks/"):
            return name.endswith(".sample")
        return name == ".git/config" and path.is_file() and _is_plain_config(path)

    def _marked(self, name: str, path: Path, *, keep: bool) -> _Mark:
        """Its content is read only when it is another one than before."""
        found = path.lstat()
        mark = (stat.S_IMODE(found.st_mode), found.st_ino, found.st_mtime_ns, found.st_size)
        regular = stat.S_ISREG(found.st_mode) and found.st_size <= MAX_FILE_BYTES
        if keep and regular and self._contents.get(name, ((), b""))[0] != mark:
            self._contents[name] = (mark, path.read_bytes())
        return mark

    def _existing(self) -> Iterator[Path]:
        for name in FILES:
            path = self._root / name
            if os.path.lexists(path):
                yield path
        for name in FOLDERS:
            folder = self._root / name
            if not os.path.lexists(folder):
                continue
            if self._fixed or folder.is_symlink():
                yield folder
            elif folder.is_dir():
                yield from (path for path in sorted(folder.rglob("*")) if not _is_folder(path))

    def _set_aside(self, path: Path, name: str) -> None:
        self._quarantine.mkdir(parents=True, exist_ok=True, mode=0o700)
        number = len(list(self._quarantine.iterdir()))
        target = self._quarantine / f"{number:04}-{name.replace('/', '-')}"
        # It loads several compressors, and is hardly ever needed.
        from shutil import move

        move(str(path), str(target))
        # Nobody is to run it from there by accident.
        with contextlib.suppress(OSError):
            if target.is_file() and not target.is_symlink():
                target.chmod(0o600)


class Guard:
    """The reserved names as they were before one command."""

    def __init__(
        self,
        reserved: Reserved,
        before: dict[str, _Mark],
        contents: dict[str, _Kept],
        *,
        had_repository: bool,
    ) -> None:
        self._reserved = reserved
        self._before = before
        self._contents = contents
        self._had_repository = had_repository

    def differences(self) -> list[str]:
        """Names that the command has made, changed or removed."""
        before, now = self._before, self._reserved.marks(keep=False)
        changed = [n for n in sorted(before.keys() | now.keys()) if before.get(n) != now.get(n)]
        if self._had_repository:
            return changed
        return [name for name in changed if not self._reserved.is_ordinary(name)]

    def undo(self) -> list[str]:
        """Bring them back to what they were; those that were not. What the command made of them
        is in quarantine."""
        names = self.differences()
        for name in names:
            existed = name in self._before
            self._reserved.put_back(name, self._contents.get(name) if existed else None)
        return names


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_plain_config(path: Path) -> bool:
    """Whether the settings of a repository name no program."""
    section = ""
    for line in path.read_text("utf-8", "replace").splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line[1:].split("]")[0].split()[0].lower() if line[1:].strip(" ]") else "?"
        elif line and not line.startswith(("#", ";")):
            key = line.split("=")[0].strip().lower()
            plain = section in _HARMLESS_SECTIONS
            if not plain or (section == "core" and key not in _HARMLESS_CORE):
                return False
            if section == "remote" and key not in ("url", "fetch", "pushurl"):
                return False
    return True
