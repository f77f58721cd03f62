"""Shortens paths for display."""

from __future__ import annotations

from pathlib import Path


def short_path(path: str, root: str = "") -> str:
    """Relative to `root`, else to the home folder, if the path is inside."""
    if root and path == root:
        return "."
    if root and path.startswith(root.rstrip("/") + "/"):
        return path[len(root.rstrip("/")) + 1 :]
    home = str(Path.home())
    inside = path == home or path.startswith(home + "/")
    return "~" + path[len(home) :] if inside and home != "/" else path
