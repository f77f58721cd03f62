"""Locates the git repository of a folder when it lies outside the folder."""

from __future__ import annotations

from pathlib import Path


def repository_of(root: str) -> str:
    """Return the folder that `git commit` in `root` writes to, if it is outside `root`: a
    repository further up, the main repository of a worktree, or the one around a submodule."""
    for folder in (Path(root), *Path(root).parents):
        found = folder / ".git"
        if found.is_dir():
            return "" if folder == Path(root) else str(found.resolve())
        if found.is_file():
            return _resolve_gitdir(found)
    return ""


def _resolve_gitdir(file: Path) -> str:
    """A worktree names its part of the repository, and that part names the repository."""
    try:
        words = file.read_text("utf-8", "replace")
        if not words.startswith("gitdir:"):
            return ""
        part = (file.parent / words.removeprefix("gitdir:").strip()).resolve()
        common = part / "commondir"
        whole = (part / common.read_text().strip()).resolve() if common.is_file() else part
    except OSError:
        return ""
    # A command that can write the file must not open another folder with it.
    return str(whole) if (whole / "objects").is_dir() and (whole / "refs").is_dir() else ""
