"""Where the git repository of a folder lies, when that is not in the folder itself."""

from __future__ import annotations

from pathlib import Path


def repository_of(root: str) -> str:
    """The folder that `git commit` in `root` writes to, if it is outside of `root`: that of a
    repository further up, of the main one of a worktree, or of the one around a submodule."""
    for folder in (Path(root), *Path(root).parents):
        found = folder / ".git"
        if found.is_dir():
            return "" if folder == Path(root) else str(found.resolve())
        if found.is_file():
            return _led_to(found)
    return ""


def _led_to(file: Path) -> str:
    """A worktree names its own part of the repository, and that part names the whole."""
    try:
        words = file.read_text("utf-8", "replace")
        if not words.startswith("gitdir:"):
            return ""
        part = (file.parent / words.removeprefix("gitdir:").strip()).resolve()
        common = part / "commondir"
        whole = (part / common.read_text().strip()).resolve() if common.is_file() else part
    except OSError:
        return ""
    # Whoever can write the file must not open another folder by it.
    return str(whole) if (whole / "objects").is_dir() and (whole / "refs").is_dir() else ""
