"""File name patterns, as in .gitignore and most search tools."""

from __future__ import annotations

import re

from hermes.core.errors import ToolError

MAX_BRANCHES = 200

_NAMED = {
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
            body += _NAMED.get(named[1], "")
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
        branches = [_normalize_glob(branch) for branch in _expand_braces(glob.removeprefix("!"))]
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


def _normalize_glob(glob: str) -> str:
    glob = glob.removeprefix("./") or "*"
    return f"{glob}**" if glob.endswith("/") else glob


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
