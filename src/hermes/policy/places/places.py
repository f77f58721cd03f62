"""Tells whose place a path is: credentials, our own state, a device, the system, the workspace."""

from __future__ import annotations

import posixpath

from hermes.policy.patterns import regex
from hermes.policy.places.lists import lists, table

_HOMES = regex(
    r"^(/home/[^/]+|/root|/var/root|/users/[^/]+|/mnt/[a-z]/users/[^/]+|/export/home/[^/]+)(?=/)"
)
_ENV = regex(r"^\.env(rc$|[._-].*|\d*$)|^[\w.-]*\.env$")
_PROC = regex(r"^/proc/(?P<who>[^/]+)(?:/task/[^/]+)?(?:/(?P<what>[^/]+))?")


class Places:
    """Judges absolute paths by their names alone. `state` is our own home."""

    def __init__(self, root: str, home: str, state: str) -> None:
        self.root = posixpath.normpath(root)
        self.home = posixpath.normpath(home)
        self.state = posixpath.normpath(state)
        self._own = (self.state.lower(), posixpath.join(self.home, ".hermes").lower())
        self._other_roots = lists().roots - {"/", self.root}

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
            if any(_inside(rest, each) for each in lists().secret_state):
                return False
            if any(_inside(rest, each) for each in lists().readable_state):
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
        if not found or found[1] in lists().shared_homes:
            return False
        return not any(_inside(each.lower(), found[1]) for each in (self.home, self.root))

    def not_a_file(self, path: str) -> str:
        """What a path is if its name says that it is no file, or nothing."""
        low = path.lower()
        if _inside(low, "/dev") and not _inside(low, "/dev/shm"):
            return "a device"
        if table("sockets").below(low):
            return "the socket of a service"
        if posixpath.basename(low) in lists().windows_devices:
            return "the name of a device"
        return ""

    def started_later(self, path: str) -> str:
        """Why other programs run or obey what is written there, or nothing."""
        low = path.lower()
        rest = self._in_home(low)
        if rest and (table("shell_files").below(rest) or table("started_in_home").below(rest)):
            return "is run or obeyed by programs that start later"
        if table("started_by_system").below(low):
            return "is run or obeyed when the system starts or the time comes"
        if table("started_anywhere").anywhere(low):
            return "is run or obeyed by other programs later"
        return ""

    def start_file(self, path: str) -> bool:
        """A file of the home that a shell or login reads."""
        rest = self._in_home(path.lower())
        return rest in lists().shell_files

    def told_to_agents(self, path: str) -> bool:
        """What agents read when they start in a folder."""
        return bool(table("agent_files").anywhere(path.lower()))

    def is_scratch(self, path: str) -> bool:
        """Among temporary files, but not beside a workspace that itself lies among them: what is
        there is somebody's, not everybody's."""
        folder = next((each for each in lists().scratch if _inside(path, each)), "")
        if not folder:
            return False
        top = path[: path.find("/", len(folder) + 1)] if path.count("/", len(folder) + 1) else path
        return not (_inside(self.root, top) and self.root != top)

    def in_workspace(self, path: str) -> bool:
        """One as wide as the machine does not hold the machine's other roots."""
        if not _inside(path, self.root):
            return False
        if self.root not in lists().roots:
            return True
        return not any(_inside(path, each) for each in self._other_roots)

    def _store(self, low: str) -> str:
        rest = self._in_home(low)
        if rest and (words := table("home_folders").below(rest) or table("home_files").below(rest)):
            return words
        if words := table("anywhere").anywhere(low):
            return words
        return "secrets of the system" if table("system_secrets").below(low) else ""

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
    if found["what"] in lists().process_secrets and found["who"] != "sys":
        return "the memory, files or variables of a running program"
    return "memory or keys of the kernel" if found["who"] in lists().kernel_secrets else ""


def _by_name(name: str) -> str:
    words = table("names").whole(name)
    return "" if not words or table("harmless_names").whole(name) else words


def _is_env(name: str) -> bool:
    if "env" not in name or not _ENV.match(name):
        return False
    if any(word in name for word in lists().env_examples):
        return False
    return not name.endswith((".md", ".ts", ".js", ".py", ".rs", ".go", ".html", ".txt.j2"))


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder if folder == "/" else folder + "/")
