"""How plans speak of paths."""

from __future__ import annotations

from hermes.providers.offline.plan import Task
from hermes.providers.offline.voice import code


def place(task: Task) -> str:
    """The folder of a plan, for display."""
    return task.say("this_folder") if task.path == "." else code(task.path)
