"""Selects the files of a search: nothing ignored, hidden files only on request, no links."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hermes.core.ports import SearchQuery
from hermes.workspaces.search.gitignore import IgnoreFiles, IgnoreRules, LocalIgnoreFiles
from hermes.workspaces.search.globs import FileGlob


class Selection:
    """The files of one search, the same for every engine."""

    def __init__(self, query: SearchQuery, ignore_files: IgnoreFiles | None = None) -> None:
        self.root = query.root.rstrip("/") or "/"
        self.hidden = query.hidden
        self.globs = [FileGlob(query.glob)]
        if query.target == "files":
            self.globs.append(FileGlob(query.pattern))
        self._rules = IgnoreRules(self.root, ignore_files or LocalIgnoreFiles())
        self._folders: dict[str, bool] = {self.root: True}

    def includes(self, path: str) -> bool:
        """Return whether a file that a program found below the root belongs to the selection."""
        if not _is_text(path):
            return False
        if path == self.root:
            return self._matches_globs(path)
        return self._open_folder(_parent(path)) and self._takes_entry(path)

    def walk(self) -> Iterator[str]:
        """Yield all files; entries of a folder come in byte order."""
        if Path(self.root).is_file():
            yield from filter(self._matches_globs, (self.root,))
            return
        waiting = [self._entries(self.root)]
        while waiting:
            entry = next(waiting[-1], None)
            if entry is None:
                waiting.pop()
            elif entry.is_dir(follow_symlinks=False):
                if self._visible(entry.path, folder=True):
                    waiting.append(self._entries(entry.path))
            elif entry.is_file(follow_symlinks=False) and self._takes_entry(entry.path):
                yield entry.path

    def _entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as found:
                entries = [entry for entry in found if _is_text(entry.name)]
        except OSError:
            entries = []
        return iter(sorted(entries, key=lambda entry: os.fsencode(entry.name)))

    def _takes_entry(self, path: str) -> bool:
        return self._matches_globs(path) and self._visible(path, folder=False)

    def _open_folder(self, path: str) -> bool:
        known = self._folders.get(path)
        if known is None:
            known = self._open_folder(_parent(path)) and self._visible(path, folder=True)
            self._folders[path] = known
        return known

    def _visible(self, path: str, *, folder: bool) -> bool:
        name = path[path.rindex("/") + 1 :]
        if name == ".git" or (name.startswith(".") and not self.hidden):
            return False
        return not self._rules.is_ignored(path, folder=folder)

    def _matches_globs(self, path: str) -> bool:
        below = path[len(self.root) :].lstrip("/") or path[path.rindex("/") + 1 :]
        return all(glob.takes(below) for glob in self.globs)


def _parent(path: str) -> str:
    return path[: path.rindex("/")] or "/"


def _is_text(name: str) -> bool:
    """Names that are not UTF-8 cannot be shown to a model."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
