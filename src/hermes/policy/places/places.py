"""Tells whose place a path is: credentials, our own state, a device, the system, the workspace."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from functools import cache, lru_cache

from hermes.policy.patterns import regex
from hermes.policy.places import reserved, stores

_HOMES = regex(
    r"^(/home/[^/]+|/root|/var/root|/users/[^/]+|/mnt/[a-z]/users/[^/]+|/export/home/[^/]+)(?=/)"
)
_ENV = regex(r"^\.env(rc$|[._-].*|\d*$)|^[\w.-]*\.env$")
_PROC = regex(r"^/proc/(?P<who>[^/]+)(?:/task/[^/]+)?(?:/(?P<what>[^/]+))?")


# Where a pattern is looked for: from the start of the path, below any folder, as a whole name.
BELOW = r"^…(?:/|$)"
ANYWHERE = r"(?:^|/)…(?:/|$)"
WHOLE = r"^…$"


class Places:
    """Judges absolute paths by their names alone. `state` is our own home."""

    def __init__(self, root: str, home: str, state: str) -> None:
        self.root = posixpath.normpath(root)
        self.home = posixpath.normpath(home)
        self.state = posixpath.normpath(state)
        self._own = (self.state.lower(), posixpath.join(self.home, ".hermes").lower())
        self._other_roots = reserved.ROOTS - {"/", self.root}

    def own_state(self, path: str) -> bool:
        """Part of what Hermes keeps for itself."""
        low = path.lower()
        return any(_inside(low, each) for each in self._own)

    def made_to_be_sent(self, path: str) -> bool:
        """A picture, a sound or another file that a tool has put into our state."""
        states = (self.state, posixpath.join(self.home, ".hermes"))
        cached = any(_inside(path, posixpath.join(each, "cache")) for each in states)
        return cached and self.readable_state(path)

    def readable_state(self, path: str) -> bool:
        """Part of our state that tools left there to be read again."""
        for state in (self.state, posixpath.join(self.home, ".hermes")):
            if not _inside(path, state):
                continue
            rest = posixpath.relpath(path, state)
            if any(_inside(rest, each) for each in reserved.SECRET_STATE):
                return False
            if any(_inside(rest, each) for each in reserved.READABLE_STATE):
                return True
        return False

    def secret(self, path: str) -> str:
        """What of a person's or the system's secrets a path holds, or nothing."""
        low = path.lower()
        name = posixpath.basename(low)
        if _is_env(name):
            return "the secrets of an environment; .env.example shows the names without them"
        if name.endswith(".pub") and "id_" in name:
            return ""
        return self._store(low) or _by_name(name) or _proc_secret(low)

    def of_another_person(self, path: str) -> bool:
        """Below a home in which neither the person nor the workspace is."""
        found = _HOMES.match(path.lower())
        if not found or found[1] in reserved.SHARED_HOMES:
            return False
        return not any(_inside(each.lower(), found[1]) for each in (self.home, self.root))

    def not_a_file(self, path: str) -> str:
        """What a path is if its name says that it is no file, or nothing."""
        low = path.lower()
        if _inside(low, "/dev") and not _inside(low, "/dev/shm"):
            return "a device"
        if _below(low, reserved.SOCKETS):
            return "the socket of a service"
        if posixpath.basename(low) in reserved.WINDOWS_DEVICES:
            return "the name of a device"
        return ""

    def started_later(self, path: str) -> str:
        """Why other programs run or obey what is written there, or nothing."""
        low = path.lower()
        rest = self._in_home(low)
        started = (*reserved.SHELL_FILES, *reserved.STARTED_IN_HOME)
        if rest and _below(rest, started):
            return "is run or obeyed by programs that start later"
        if _below(low, reserved.STARTED_BY_SYSTEM):
            return "is run or obeyed when the system starts or the time comes"
        if _compiled(reserved.STARTED_ANYWHERE, ANYWHERE).search(low):
            return "is run or obeyed by other programs later"
        return ""

    def start_file(self, path: str) -> bool:
        """A file of the home that a shell or login reads."""
        rest = self._in_home(path.lower())
        return rest in reserved.SHELL_FILES

    def of_the_system(self, path: str) -> bool:
        low = path.lower()
        for folder in reserved.SYSTEM_FOLDERS:
            # Containers often have their project below /usr/src or /var/lib.
            deeper = _inside(self.root.lower(), folder) and self.root.lower() != folder
            if _inside(low, folder) and not (deeper and self.in_workspace(path)):
                return not self.is_scratch(path)
        return False

    def told_to_agents(self, path: str) -> bool:
        """What agents read when they start in a folder."""
        return _compiled(reserved.TOLD_TO_AGENTS, ANYWHERE).search(path.lower()) is not None

    def is_scratch(self, path: str) -> bool:
        """Among temporary files, but not beside a workspace that itself lies among them: what is
        there is somebody's, not everybody's."""
        folder = next((each for each in reserved.SCRATCH if _inside(path, each)), "")
        if not folder:
            return False
        top = path[: path.find("/", len(folder) + 1)] if path.count("/", len(folder) + 1) else path
        return not (_inside(self.root, top) and self.root != top)

    def in_workspace(self, path: str) -> bool:
        """One as wide as the machine does not hold the machine's other roots."""
        if not _inside(path, self.root):
            return False
        if self.root not in reserved.ROOTS:
            return True
        return not any(_inside(path, each) for each in self._other_roots)

    def _store(self, low: str) -> str:
        rest = self._in_home(low)
        for table in ("HOME_FOLDERS", "HOME_FILES"):
            if rest and (words := _words_of(rest, table, BELOW)):
                return words
        if words := _words_of(low, "ANYWHERE", ANYWHERE):
            return words
        return "secrets of the system" if _below(low, stores.SYSTEM) else ""

    def _in_home(self, low: str) -> str:
        """The rest of a path below a home, this person's or another's."""
        home = self.home.lower().rstrip("/")
        if low.startswith(home + "/"):
            return low[len(home) + 1 :]
        found = _HOMES.match(low)
        return low[found.end() + 1 :] if found else ""


def _proc_secret(low: str) -> str:
    found = _PROC.match(low)
    if found is None:
        return ""
    if found["what"] in reserved.PROCESS_SECRETS and found["who"] != "sys":
        return "the memory, files or variables of a running program"
    return "memory or keys of the kernel" if found["who"] in reserved.KERNEL_SECRETS else ""


def _by_name(name: str) -> str:
    if _compiled(stores.HARMLESS_NAMES, WHOLE).search(name):
        return ""
    return _words_of(name, "NAMES", WHOLE)


def _words_of(low: str, table: str, shape: str) -> str:
    """The words of the first group of the table that the path belongs to, or nothing."""
    if not _whole(table, shape).search(low):
        return ""
    groups: Mapping[str, tuple[str, ...]] = getattr(stores, table)
    return next(words for words, group in groups.items() if _compiled(group, shape).search(low))


@cache
def _whole(table: str, shape: str) -> re.Pattern[str]:
    """One expression for all groups of a table of `stores`."""
    groups: Mapping[str, tuple[str, ...]] = getattr(stores, table)
    return _compiled(tuple(each for group in groups.values() for each in group), shape)


def _is_env(name: str) -> bool:
    if "env" not in name or not _ENV.match(name):
        return False
    if any(word in name for word in stores.ENV_EXAMPLES):
        return False
    return not name.endswith((".md", ".ts", ".js", ".py", ".rs", ".go", ".html", ".txt.j2"))


@lru_cache(maxsize=256)
def _compiled(patterns: tuple[str, ...], shape: str) -> re.Pattern[str]:
    """One expression for all patterns, in which a `*` stays within one name. The shape says what
    may stand around: BELOW, ANYWHERE or WHOLE."""
    escaped = (re.escape(pattern).replace(r"\*", "[^/]*") for pattern in patterns)
    return re.compile(shape.replace("…", f"(?:{'|'.join(escaped)})"))


def _below(path: str, patterns: tuple[str, ...]) -> bool:
    return _compiled(patterns, BELOW).search(path) is not None


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder if folder == "/" else folder + "/")
