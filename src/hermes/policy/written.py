"""Files that came into being while a session runs: what they hold is judged when they are run."""

from __future__ import annotations

import math
import os
import stat
from typing import TypeVar

from hermes.policy.shell.state import Stream

LARGEST = 256 * 1024
NEVER = math.inf
# What says which code of others a project is built with.
MANIFESTS = (
    "package.json",
    "requirements.txt",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "Pipfile",
    "Cargo.toml",
    "go.mod",
    "Gemfile",
    "composer.json",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "environment.yml",
)
T = TypeVar("T")


class Written:
    """Told by the time at which a file's inode last changed, which nobody can set back."""

    def __init__(self, since: float = NEVER) -> None:
        self._since = since

    def is_new(self, path: str) -> bool:
        if self._since == NEVER:
            return False
        try:
            return os.stat(path).st_ctime >= self._since  # noqa: PTH116
        except (OSError, ValueError):
            return False

    def text(self, path: str) -> str | None:
        """What a new file holds; None for others, and for what is no text."""
        if not self.is_new(path):
            return None
        try:
            with open(path, "rb", opener=_opened) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None
                return file.read(LARGEST).decode("utf-8")
        except (OSError, ValueError):
            return None

    def manifests(self, *folders: str) -> bool:
        """Whether one of the folders has a new list of the code that its project needs."""
        if self._since == NEVER:
            return False
        return any(self.is_new(f"{folder}/{name}") for folder in folders for name in MANIFESTS)


class Contents(dict[str, Stream]):
    """The files that a script knows: those that it writes itself, and new ones on the disk.
    `asked` tells that one of the latter was looked into."""

    def __init__(self, written: Written) -> None:
        super().__init__()
        self._written = written
        self.asked = False

    def get(self, path: str, default: T = None) -> Stream | T:  # type: ignore[assignment]
        found = super().get(path)
        if found is not None:
            return found
        text = self._written.text(path) if path.startswith("/") else None
        if text is None:
            return default
        self.asked = True
        return Stream(text=text)


def _opened(path: str, flags: int) -> int:
    # A pipe must not keep us waiting for a writer.
    return os.open(path, flags | os.O_NONBLOCK)
