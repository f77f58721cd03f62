"""Reads files that were written during the session or while untrusted text was in view, so that
commands that run them are checked with their content."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterable
from typing import Protocol, TypeVar

from hermes.policy.patterns import word_list
from hermes.policy.shell.state import Stream

LARGEST = 256 * 1024
NEVER = math.inf
T = TypeVar("T")


class TaintedFiles(Protocol):
    """Files that were written while untrusted text was in view, in any session."""

    def exist(self) -> bool: ...

    def sources(self, path: str) -> tuple[str, ...]: ...

    def names(self, *folders: str) -> tuple[str, ...]: ...

    def clear(self, paths: Iterable[str]) -> None: ...


class FileTexts(Protocol):
    """Contents of files. The `stamp` of a file changes with its content."""

    def text(self, path: str) -> str | None: ...

    def stamp(self, path: str) -> tuple[str, int, int] | None: ...


class DiskTexts:
    """Reads the contents of files on this machine."""

    def text(self, path: str) -> str | None:
        try:
            # Opening a pipe must not wait for a writer.
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
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
    """Tells which files are new in this session or tainted, and reads them. New files are
    recognised by the change time of their inode, which cannot be set back."""

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
        """Return the untrusted sources that were in view when the file was written."""
        return self._known.sources(path) if self._known is not None else ()

    def tainted_files(self, *folders: str) -> tuple[str, ...]:
        """Return the files below these folders that may be tainted."""
        return self._known.names(*folders) if self._known is not None else ()

    def has_tainted_files(self) -> bool:
        """Whether there is any tainted file."""
        return self._known is not None and self._known.exist()

    def clear(self, paths: Iterable[str]) -> None:
        if self._known is not None:
            self._known.clear(paths)

    def text(self, path: str) -> str | None:
        """Return the content of a new or tainted file; None for other files and for binary
        content."""
        if not self.is_new(path) and not self.sources(path):
            return None
        return self._texts.text(path)

    def stamp(self, path: str) -> tuple[str, int, int] | None:
        """Return a value that changes with the content of the file; None where there is no file."""
        return self._texts.stamp(path)

    def has_new_project_file(self, *folders: str) -> bool:
        """Whether a file that programs run without being told, such as a Makefile, is new."""
        if self._since == NEVER:
            return False
        names = word_list("implicit_project_files")
        return any(self.is_new(f"{folder}/{name}") for folder in {*folders} for name in names)

    def manifests(self, *folders: str) -> tuple[str, ...]:
        """Return the new or tainted dependency lists in these folders."""
        if self._since == NEVER and not self.has_tainted_files():
            return ()
        paths = [
            f"{folder}/{name}"
            for folder in dict.fromkeys(folders)
            for name in word_list("dependency_lists")
        ]
        return tuple(path for path in paths if self.is_new(path) or self.sources(path))


class CommandFiles(SessionFiles):
    """The files that one command writes and may run afterwards, with what it writes into them."""

    def __init__(self, contents: dict[str, Stream]) -> None:
        super().__init__()
        self._contents = {path: each.text for path, each in contents.items() if each.known}

    def sources(self, path: str) -> tuple[str, ...]:
        return ("this command",) if path in self._contents else ()

    def tainted_files(self, *folders: str) -> tuple[str, ...]:
        below = tuple(f"{folder}/" for folder in folders)
        return tuple(path for path in self._contents if path.startswith(below))

    def has_tainted_files(self) -> bool:
        return bool(self._contents)

    def text(self, path: str) -> str | None:
        return self._contents.get(path)

    def stamp(self, path: str) -> tuple[str, int, int] | None:
        return (path, 0, 0) if path in self._contents else None


class ScriptFiles(dict[str, Stream]):
    """The files whose content is known while a script is followed: those that it writes, and new
    ones on the disk. `asked` are the latter that were read."""

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
