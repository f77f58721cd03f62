"""Paths as short as they can be told."""

from __future__ import annotations

from pathlib import Path


def near_path(path: str, root: str = "") -> str:
    """From `root` when it is inside, else from the person's own folder when it is inside that."""
    if root and path == root:
        return "."
    if root and path.startswith(root.rstrip("/") + "/"):
        return path[len(root.rstrip("/")) + 1 :]
    home = str(Path.home())
    inside = path == home or path.startswith(home + "/")
    return "~" + path[len(home) :] if inside and home != "/" else path
