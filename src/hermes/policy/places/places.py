"""Classifies absolute paths by name: credentials, own state, devices, the system, the workspace."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from hermes.policy.patterns import load_regex, regex
from hermes.policy.places.spelling import real_path
from hermes.policy.shell.state import SOME, UNKNOWN

# Written by scripts/generate_policy.py.
COMPILED = Path(__file__).with_name("places.json")
Groups = dict[str, tuple[str, ...]]


class Lists(msgspec.Struct, forbid_unknown_fields=True):
    """The content of places.toml, which explains the fields. Groups are paths by what they hold."""

    home_folders: Groups
    home_files: Groups
    anywhere: Groups
    names: Groups
    harmless_names: tuple[str, ...]
    env_examples: tuple[str, ...]
    system_secrets: tuple[str, ...]
    shell_files: tuple[str, ...]
    started_in_home: tuple[str, ...]
    started_anywhere: tuple[str, ...]
    agent_files: tuple[str, ...]
    started_by_system: tuple[str, ...]
    system_folders: tuple[str, ...]
    roots: frozenset[str]
    scratch: tuple[str, ...]
    sockets: tuple[str, ...]
    process_secrets: frozenset[str]
    kernel_secrets: frozenset[str]
    shared_homes: frozenset[str]
    windows_devices: frozenset[str]
    readable_state: tuple[str, ...]
    secret_state: tuple[str, ...]


def is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


@cache
def lists() -> Lists:
    return msgspec.json.decode(COMPILED.read_bytes(), type=Lists)


class PathTable:
    """Finds what paths hold. A `*` in a pattern is any part of one name."""

    def __init__(self, groups: Mapping[str, Iterable[str]]) -> None:
        self._exact: dict[str, str] = {}
        self._globs: dict[str, str] = {}
        for description, patterns in groups.items():
            for pattern in patterns:
                (self._globs if "*" in pattern else self._exact).setdefault(pattern, description)
        # By their first name, with the number of names.
        self._lengths: dict[str, set[int]] = {}
        for pattern in self._exact:
            parts = pattern.split("/")
            self._lengths.setdefault(parts[0], set()).add(len(parts))
        self._compiled: dict[str, re.Pattern[str]] = {}

    def below(self, path: str) -> str:
        """Return what a path or a folder around it holds, or ""."""
        found = self._exact.get(path)
        end = len(path)
        while found is None and (end := path.rfind("/", 0, end)) > 0:
            found = self._exact.get(path[:end])
        return found or self._glob(path, r"(?:%s)(?:/|$)")

    def anywhere(self, path: str) -> str:
        """Return the same with the pattern beginning at any folder of the path."""
        parts = path.split("/")
        for start, part in enumerate(parts):
            for length in self._lengths.get(part, ()):
                if found := self._exact.get("/".join(parts[start : start + length])):
                    return found
        return self._glob(path, r"(?:.*/)?(?:%s)(?:/|$)")

    def whole(self, name: str) -> str:
        return self._exact.get(name) or self._glob(name, r"(?:%s)$")

    def _glob(self, path: str, shape: str) -> str:
        if not self._globs:
            return ""
        if shape not in self._compiled:
            each = "|".join(f"({_expression(pattern)})" for pattern in self._globs)
            self._compiled[shape] = re.compile(shape.replace("(?:%s)", f"(?:{each})"))
        found = self._compiled[shape].match(path)
        return [*self._globs.values()][(found.lastindex or 1) - 1] if found else ""


def _expression(pattern: str) -> str:
    return "[^/]*".join(map(re.escape, pattern.split("*")))


@cache
def table(name: str) -> PathTable:
    """Return one of the lists as a table; a plain list is one group."""
    found = getattr(lists(), name)
    return PathTable(found if isinstance(found, dict) else {name: found})


# Temporary files of programs, in a private folder of the session.
TEMPORARY = f"/tmp/{SOME}"


class SafeRoots:
    """The only folders in which anything may be written; none means no limit. Links are followed,
    but not those of a `remote` machine."""

    def __init__(self, roots: Sequence[str] = (), *, remote: bool = False) -> None:
        self._remote = remote
        self._roots = tuple(posixpath.normpath(self._real(root)) for root in roots)

    @property
    def temporary(self) -> str:
        """The folder for temporary files."""
        return TEMPORARY if self._roots else "/tmp"

    def why_refused(self, path: str) -> str:
        """Return why nothing may be written at an absolute path, or ""."""
        known = path.split(UNKNOWN)[0]
        if not self._roots or not known or known.startswith(TEMPORARY) or self._holds(known):
            return ""
        named = ", ".join(self._roots)
        return f"{known} is outside the folders that may be written: {named}."

    def _holds(self, path: str) -> bool:
        real = posixpath.normpath(self._real(path))
        return any(is_inside(real, root) for root in self._roots)

    def _real(self, path: str) -> str:
        return path if self._remote else real_path(path)


_HOMES = load_regex("home_folder")
_ENV = regex(r"^\.env(rc$|[._-].*|\d*$)|^[\w.-]*\.env$")
_PROC = regex(r"^/proc/(?P<who>[^/]+)(?:/task/[^/]+)?(?:/(?P<what>[^/]+))?")


class Places:
    """Classifies absolute paths by name alone. `state` is Hermes' own home."""

    def __init__(self, root: str, home: str, state: str) -> None:
        self.root = posixpath.normpath(root)
        self.home = posixpath.normpath(home)
        self.state = posixpath.normpath(state)
        self._home_prefix = self.home.lower().rstrip("/") + "/"
        self._own = (self.state.lower(), posixpath.join(self.home, ".hermes").lower())
        self._other_roots = lists().roots - {"/", self.root}
        # The folder of a person lies in Hermes' home, and belongs to that person's sessions.
        people = tuple(posixpath.join(each, "people") + "/" for each in self._own)
        self._own_folder = self.root.lower() if self.root.lower().startswith(people) else ""

    def own_state(self, path: str) -> bool:
        """Whether the path is Hermes' own state."""
        low = path.lower()
        if self._own_folder and is_inside(low, self._own_folder):
            return False
        return any(is_inside(low, each) for each in self._own)

    def is_outgoing_media(self, path: str) -> bool:
        """Whether a tool put the file into the cache to be sent, for example an image."""
        states = (self.state, posixpath.join(self.home, ".hermes"))
        cached = any(is_inside(path, posixpath.join(each, "cache")) for each in states)
        return cached and self.readable_state(path)

    def readable_state(self, path: str) -> bool:
        """Whether tools may read this part of Hermes' state back."""
        for state in (self.state, posixpath.join(self.home, ".hermes")):
            if not is_inside(path, state):
                continue
            rest = posixpath.relpath(path, state)
            if any(is_inside(rest, each) for each in lists().secret_state):
                return False
            if any(is_inside(rest, each) for each in lists().readable_state):
                return True
        return False

    def secret(self, path: str) -> str:
        """Return the secrets that a path holds, in words, or ""."""
        low = path.lower()
        name = posixpath.basename(low)
        if _is_env(name):
            return "the secrets of an environment; .env.example shows the names without them"
        if name.endswith(".pub") and "id_" in name:
            return ""
        return self._store(low) or _by_name(name) or _proc_secret(low)

    def of_another_person(self, path: str) -> bool:
        """Whether the path lies in a home of neither the person nor the workspace."""
        found = _HOMES.match(path.lower())
        if not found or found[1] in lists().shared_homes:
            return False
        return not any(is_inside(each.lower(), found[1]) for each in (self.home, self.root))

    def not_a_file(self, path: str) -> str:
        """Return what a path is if its name shows that it is not a file, or ""."""
        low = path.lower()
        if is_inside(low, "/dev") and not is_inside(low, "/dev/shm"):
            return "a device"
        if table("sockets").below(low):
            return "the socket of a service"
        if posixpath.basename(low) in lists().windows_devices:
            return "the name of a device"
        return ""

    def runs_later(self, path: str) -> str:
        """Return why other programs run the file or read settings from it later, or ""."""
        low = path.lower()
        rest = self._in_home(low)
        if rest and (table("shell_files").below(rest) or table("started_in_home").below(rest)):
            return "is run or obeyed by programs that start later"
        if table("started_by_system").below(low):
            return "is run or obeyed when the system starts or the time comes"
        if table("started_anywhere").anywhere(low):
            return "is run or obeyed by other programs later"
        return ""

    def is_shell_file(self, path: str) -> bool:
        """Whether a shell or login reads this file of the home."""
        rest = self._in_home(path.lower())
        return rest in lists().shell_files

    def is_agent_file(self, path: str) -> bool:
        """Whether agents read the file when they start in its folder."""
        return bool(table("agent_files").anywhere(path.lower()))

    def is_scratch(self, path: str) -> bool:
        """Whether the path is a temporary file. Neighbours of a workspace in a temporary folder are
        not."""
        folder = next((each for each in lists().scratch if is_inside(path, each)), "")
        if not folder:
            return False
        top = path[: path.find("/", len(folder) + 1)] if path.count("/", len(folder) + 1) else path
        return not (is_inside(self.root, top) and self.root != top)

    def in_workspace(self, path: str) -> bool:
        """Whether the path lies in the workspace. A workspace that is a root does not contain the
        other roots."""
        if not is_inside(path, self.root):
            return False
        if self.root not in lists().roots:
            return True
        return not any(is_inside(path, each) for each in self._other_roots)

    def _store(self, low: str) -> str:
        rest = self._in_home(low)
        if rest and (found := table("home_folders").below(rest) or table("home_files").below(rest)):
            return found
        if found := table("anywhere").anywhere(low):
            return found
        return "secrets of the system" if table("system_secrets").below(low) else ""

    def _in_home(self, low: str) -> str:
        """Return the part of a path below any home."""
        if low.startswith(self._home_prefix):
            return low[len(self._home_prefix) :]
        found = _HOMES.match(low)
        return low[found.end() + 1 :] if found else ""


def _proc_secret(low: str) -> str:
    found = _PROC.match(low)
    if found is None:
        return ""
    if found["what"] in lists().process_secrets and found["who"] != "sys":
        return "the memory, files or variables of a running program"
    return "memory or keys of the kernel" if found["who"] in lists().kernel_secrets else ""


def _by_name(name: str) -> str:
    description = table("names").whole(name)
    return "" if not description or table("harmless_names").whole(name) else description


def _is_env(name: str) -> bool:
    if "env" not in name or not _ENV.match(name):
        return False
    if any(word in name for word in lists().env_examples):
        return False
    return not name.endswith((".md", ".ts", ".js", ".py", ".rs", ".go", ".html", ".txt.j2"))
