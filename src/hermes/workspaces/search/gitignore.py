"""The rules of .gitignore files, with nesting, negation and anchors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

from hermes.workspaces.search.globs import glob_to_regex

Chain = tuple[tuple[str, "IgnoreFile"], ...]


class IgnoreFile:
    """One .gitignore. The last rule that matches a path decides."""

    def __init__(self, text: str) -> None:
        rules = [rule for line in text.splitlines() if (rule := _parse_rule(line))]
        rules.reverse()
        self._negated = [negated for _, negated, _ in rules]
        self._for_folders = _join_patterns([pattern for pattern, _, _ in rules])
        # Groups keep their numbers: a rule for folders only is present, but never matches.
        self._for_files = _join_patterns(
            [r"(?!)" if only else pattern for pattern, _, only in rules]
        )

    def verdict(self, path: str, *, folder: bool) -> bool | None:
        """Return True for ignored, False for re-included, None if no rule matches."""
        match = (self._for_folders if folder else self._for_files).fullmatch(path)
        return None if match is None else not self._negated[(match.lastindex or 1) - 1]


def _join_patterns(patterns: list[str]) -> re.Pattern[str]:
    """Alternatives are tried in order, so the first matching group is the last rule."""
    return re.compile("|".join(f"({pattern})" for pattern in patterns) or "(?!)", re.DOTALL)


def _parse_rule(line: str) -> tuple[str, bool, bool] | None:
    """Return a regular expression, whether it is negated, and whether it is for folders only."""
    line = line.removesuffix("\r")
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    line = _without_trailing_spaces(line[1:] if negated else line)
    only_folders = line.endswith("/")
    line = line.removesuffix("/")
    anchored = "/" in line
    pattern = glob_to_regex(line.removeprefix("/"), anchored=anchored) if line else None
    return (pattern, negated, only_folders) if pattern else None


def _without_trailing_spaces(line: str) -> str:
    bare = line.rstrip(" ")
    escaped = bare.endswith("\\") and len(bare) < len(line)
    return bare + " " if escaped else bare


class IgnoreFiles(Protocol):
    def text(self, folder: str) -> str:
        """Return the folder's own .gitignore, or ""."""
        ...

    def is_repository(self, folder: str) -> bool: ...


class LocalIgnoreFiles:
    def text(self, folder: str) -> str:
        path = Path(folder, ".gitignore")
        try:
            return path.read_bytes().decode("utf-8", "surrogateescape") if path.is_file() else ""
        except OSError:
            return ""

    def is_repository(self, folder: str) -> bool:
        return Path(folder, ".git").exists()


class IgnoreRules:
    """The rules that apply below `root`: those of the folders on the way to a path and, when the
    root lies in a git repository, of those up to its top. A nested repository has only its own
    rules."""

    def __init__(self, root: str, files: IgnoreFiles) -> None:
        self._root = root
        self._files = files
        self._chains: dict[str, Chain] = {}

    def is_ignored(self, path: str, *, folder: bool) -> bool:
        """Return whether the entry itself is ignored; the caller checks the folders above it."""
        for base, file in self._chain(path[: path.rindex("/")] or "/"):
            verdict = file.verdict(path[len(base) :].lstrip("/"), folder=folder)
            if verdict is not None:
                return verdict
        return False

    def _chain(self, folder: str) -> Chain:
        """Return the ignore files that apply in a folder, nearest first."""
        known = self._chains.get(folder)
        if known is None:
            own = self._own(folder)
            known = own if self._ends_here(folder) else own + self._chain(str(Path(folder).parent))
            self._chains[folder] = known
        return known

    def _own(self, folder: str) -> Chain:
        text = self._files.text(folder)
        return ((folder, IgnoreFile(text.removeprefix("\ufeff"))),) if text else ()

    def _ends_here(self, folder: str) -> bool:
        if self._files.is_repository(folder) or Path(folder).parent == Path(folder):
            return True
        return folder == self._root and not self._in_repository()

    def _in_repository(self) -> bool:
        return any(self._files.is_repository(str(parent)) for parent in Path(self._root).parents)
