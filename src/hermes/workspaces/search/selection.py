"""Selects the files of a search: globs, .gitignore rules, text files, no links."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from hermes.core.errors import ToolError
from hermes.core.ports import SearchQuery

MAX_BRANCHES = 200

POSIX_CLASSES = {
    "alnum": "A-Za-z0-9", "alpha": "A-Za-z", "blank": r" \t", "digit": "0-9", "lower": "a-z",
    "space": r"\s", "upper": "A-Z", "xdigit": "0-9A-Fa-f", "punct": r"!-/:-@\[-`{-~",
}  # fmt: skip


def glob_to_regex(glob: str, *, anchored: bool) -> str | None:
    """Return a regular expression for whole relative paths, or None when the glob can match
    nothing. `*` and `?` stay within a name, `**` crosses folders; without `anchored`, it matches at
    any depth."""
    out = "" if anchored else "(?:.*/)?"
    at = 0
    while at < len(glob):
        stars = re.compile(r"\*+").match(glob, at)
        if stars:
            piece, at = _stars(glob, at, stars.end())
        else:
            one = _one(glob, at)
            if one is None:
                return None
            piece, at = one
        out += piece
    return out


def _stars(glob: str, start: int, end: int) -> tuple[str, int]:
    """Two stars are special only as a whole name: `**/`, `/**/` and `/**`."""
    at_name_start = start == 0 or glob[start - 1] == "/"
    if end - start != 2 or not at_name_start:
        return "[^/]*", end
    if end == len(glob):
        return (".+" if start else ".*"), end
    if glob[end] == "/":
        return "(?:.*/)?", end + 1
    return "[^/]*", end


def _one(glob: str, at: int) -> tuple[str, int] | None:
    char = glob[at]
    if char == "?":
        return "[^/]", at + 1
    if char == "\\":
        return (re.escape(glob[at + 1]), at + 2) if at + 1 < len(glob) else None
    if char == "[":
        return _character_class(glob, at + 1)
    return re.escape(char), at + 1


def _character_class(glob: str, at: int) -> tuple[str, int] | None:
    negated = glob[at : at + 1] in ("!", "^")
    at += negated
    body, first = "", True
    while at < len(glob) and (first or glob[at] != "]"):
        first = False
        if named := re.compile(r"\[:(\w+):\]").match(glob, at):
            body += POSIX_CLASSES.get(named[1], "")
            at = named.end()
            continue
        low, at = _class_char(glob, at)
        if glob[at : at + 1] == "-" and glob[at + 1 : at + 2] not in ("]", ""):
            high, at = _class_char(glob, at + 1)
            body += f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""
        else:
            body += re.escape(low)
    if at >= len(glob):
        return None
    if not body:
        return ("[^/]" if negated else "(?!)"), at + 1
    return f"(?!/)[{'^' if negated else ''}{body}]", at + 1


def _class_char(glob: str, at: int) -> tuple[str, int]:
    if glob[at] == "\\" and at + 1 < len(glob):
        return glob[at + 1], at + 2
    return glob[at], at + 1


class FileGlob:
    """Selects files by a glob over the path below the search root. A leading `!` negates it, braces
    list alternatives, and an empty glob selects everything."""

    def __init__(self, glob: str) -> None:
        self._negated = glob.startswith("!")
        named = (
            branch.removeprefix("./") or "*" for branch in _expand_braces(glob.removeprefix("!"))
        )
        branches = [f"{each}**" if each.endswith("/") else each for each in named]
        patterns = [glob_to_regex(b.removeprefix("/"), anchored="/" in b) for b in branches]
        if not all(patterns):
            raise ToolError(f"Invalid glob {glob!r}: a '[' is not closed, or it ends in '\\'.")
        self._pattern = re.compile("|".join(f"(?:{p})" for p in patterns), re.DOTALL)
        self._all = glob in ("", "*", "**", "**/*")
        simple = not self._negated and all(
            re.fullmatch(r"[\w.*?-]+", b, re.ASCII) for b in branches
        )
        self.names: tuple[str, ...] = tuple(branches) if simple and not self._all else ()

    def takes(self, path: str) -> bool:
        return self._all or (self._pattern.fullmatch(path) is None) == self._negated


def _expand_braces(glob: str) -> list[str]:
    """Expand `{a,b}`, innermost first."""
    found = [glob]
    done: list[str] = []
    while found:
        if len(found) + len(done) > MAX_BRANCHES:
            raise ToolError(f"Invalid glob {glob!r}: too many alternatives in braces.")
        one = found.pop()
        match = re.search(r"(?<!\\)\{([^{}]*,[^{}]*)\}", one)
        if not match:
            done.append(one)
            continue
        parts = match[1].split(",")
        found += [one[: match.start()] + part + one[match.end() :] for part in reversed(parts)]
    return done


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
    """Join patterns to one. Alternatives are tried in order, so the first matching group is the
    last rule."""
    return re.compile("|".join(f"({pattern})" for pattern in patterns) or "(?!)", re.DOTALL)


def _parse_rule(line: str) -> tuple[str, bool, bool] | None:
    """Return a regular expression, whether it is negated, and whether it is for folders only."""
    line = line.removesuffix("\r")
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    line = line[1:] if negated else line
    bare = line.rstrip(" ")
    # A backslash keeps the first trailing space.
    line = f"{bare} " if bare.endswith("\\") and len(bare) < len(line) else bare
    only_folders = line.endswith("/")
    line = line.removesuffix("/")
    pattern = glob_to_regex(line.removeprefix("/"), anchored="/" in line) if line else None
    return (pattern, negated, only_folders) if pattern else None


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
            text = self._files.text(folder).removeprefix("\ufeff")
            known = ((folder, IgnoreFile(text)),) if text else ()
            parents = [str(parent) for parent in Path(folder).parents]
            is_repository = self._files.is_repository
            # Above the root, only the rules of its repository apply.
            ends = is_repository(folder) or (
                folder == self._root and not any(map(is_repository, parents))
            )
            if parents and not ends:
                known += self._chain(parents[0])
            self._chains[folder] = known
        return known


CHUNK_BYTES = 1 << 20


def is_text(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                if b"\0" in chunk:
                    return False
    except OSError:
        return False
    return True


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
    """Whether a name is UTF-8; others cannot be shown to a model."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
