"""How plans speak and think of paths."""

from __future__ import annotations

from hermes.providers.offline.plan import Task
from hermes.providers.offline.slots import KNOWN_FILES
from hermes.providers.offline.voice import code


def looks_like_file(path: str) -> bool:
    """By its name alone: an ending, or one of the names that files without one have."""
    name = path.rstrip("/").rpartition("/")[2]
    return name.casefold() in KNOWN_FILES or "." in name.strip(".")


def place(task: Task) -> str:
    """Where a plan looked, in words."""
    return task.say("this_folder") if task.path == "." else code(task.path)
