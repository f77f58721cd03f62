"""Files that came into being while a session runs, or earlier in sight of strangers: what they hold
is judged when they are run."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterable
from typing import Protocol, TypeVar

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


class TaintedFiles(Protocol):
    """Which files were written in sight of strangers, in whichever session."""

    def exist(self) -> bool: ...

    def sources(self, path: str) -> tuple[str, ...]: ...

    def names(self, *folders: str) -> tuple[str, ...]: ...

    def clear(self, paths: Iterable[str]) -> None: ...


class FileTexts(Protocol):
    """What files hold. A `stamp` is another one when a file holds something else."""

    def text(self, path: str) -> str | None: ...

    def stamp(self, path: str) -> tuple[str, int, int] | None: ...


class DiskTexts:
    """Of this machine."""

    def text(self, path: str) -> str | None:
        try:
            with open(path, "rb", opener=_opened) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None
                return file.read(LARGEST).decode("utf-8")
        except (OSError, ValueError):
            return None

    def stamp(self, path: str) -> tuple[str, int, int] | None:
        try:
            seen = os.stat(path)  # noqa: PTH116
        except OSError:
            return None
        return path, seen.st_ctime_ns, seen.st_size


class SessionFiles:
    """New files are told by the time at which their inode last changed, which nobody can set back;
    `known` tells of those that were written in sight of strangers, `texts` what is in a file."""

    def __init__(
        self,
        since: float = NEVER,
        known: TaintedFiles | None = None,
        texts: FileTexts | None = None,
    ) -> None:
        self._since = since
        self._known = known
        self._texts = texts or DiskTexts()

    def is_new(self, path: str) -> bool:
        if self._since == NEVER:
            return False
        try:
            return os.stat(path).st_ctime >= self._since  # noqa: PTH116
        except (OSError, ValueError):
            return False

    def sources(self, path: str) -> tuple[str, ...]:
        """Whose words were in view when the file was written; () for the person's own."""
        return self._known.sources(path) if self._known is not None else ()

    def suspects(self, *folders: str) -> tuple[str, ...]:
        """Names of files below these folders that may have been written in sight of strangers."""
        return self._known.names(*folders) if self._known is not None else ()

    def has_suspects(self) -> bool:
        """Whether there is any such file anywhere."""
        return self._known is not None and self._known.exist()

    def clear(self, paths: Iterable[str]) -> None:
        if self._known is not None:
            self._known.clear(paths)

    def text(self, path: str) -> str | None:
        """What a new file holds, or one that strangers may have had written; None for others, and
        for what is no text."""
        if not self.is_new(path) and not self.sources(path):
            return None
        return self._texts.text(path)

    def stamp(self, path: str) -> tuple[str, int, int] | None:
        """Another one when the file holds something else; None where there is no such file."""
        return self._texts.stamp(path)

    def manifests(self, *folders: str) -> tuple[str, ...]:
        """New lists of the code that the project in one of these folders needs."""
        if self._since == NEVER and not self.has_suspects():
            return ()
        paths = [f"{folder}/{name}" for folder in dict.fromkeys(folders) for name in MANIFESTS]
        return tuple(path for path in paths if self.is_new(path) or self.sources(path))


class ScriptFiles(dict[str, Stream]):
    """The files that a script knows: those that it writes itself, and new ones on the disk.
    `asked` are the latter, as far as they were looked into."""

    def __init__(self, written: SessionFiles) -> None:
        super().__init__()
        self._written = written
        self.asked: dict[str, None] = {}

    def get(self, path: str, default: T = None) -> Stream | T:  # type: ignore[assignment]
        found = super().get(path)
        if found is not None:
            return found
        text = self._written.text(path) if path.startswith("/") else None
        if text is None:
            return default
        self.asked[path] = None
        return Stream(text=text)


def _opened(path: str, flags: int) -> int:
    # A pipe must not keep us waiting for a writer.
    return os.open(path, flags | os.O_NONBLOCK)
