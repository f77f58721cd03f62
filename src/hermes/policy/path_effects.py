"""Judges reads, writes and deletions of paths, for file tools and for commands alike."""

from __future__ import annotations

import os.path
import posixpath
import re
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

from hermes.policy.findings import Finding, Level
from hermes.policy.patterns import load_regex, regex
from hermes.policy.places.links import GuardedFiles
from hermes.policy.places.places import Places, SafeRoots, is_inside, lists, table
from hermes.policy.places.spelling import real_path
from hermes.policy.shell.state import UNKNOWN

Place = Literal[
    "workspace", "scratch", "outside", "system", "critical", "device", "disk", "state", "home"
]

CRITICAL = frozenset(
    ("/etc/passwd", "/etc/shadow", "/etc/group", "/etc/gshadow", "/etc/sudoers", "/etc/fstab")
)
HOMES = regex(r"^(/home/[^/]+|/root|/Users/[^/]+)(?=/|$)")
DISK = load_regex("disk")
HARMLESS_DEVICE = regex(r"^/dev/(null|zero|full|u?random|std(in|out|err)|tty|fd/\d+|ptmx?)$")
KEY_FILE = regex(r"^id_(rsa|dsa|ecdsa|ed25519)(_\w+)?$|\.(kdbx|p12|pfx|keystore|jks)$")
# Names of keys that the lists do not know, and how the files begin.
KEY_LIKE = regex(r"(?i)(^|/)[^/.]+$|\.(pem|asc|crt|cer|txt|bak|old|orig|save|backup)$")
KEY_START = re.compile(
    rb"\s*(-----BEGIN [A-Z ]*PRIVATE KEY|PuTTY-User-Key-File|AGE-SECRET-KEY-"
    rb"|# created: .{20,30}\n# pub)"
)
OWN_ROOT = regex(r"^/proc/[^/]+/root(?=/|$)")
GLOB = regex(r"[*?\[]")


@cache
def home_stores() -> dict[str, list[list[str]]]:
    """Return the places of a home that hold credentials, by their first name."""
    found: dict[str, list[list[str]]] = {}
    for groups in (lists().home_folders, lists().home_files):
        for group in groups.values():
            for name in group:
                head, *rest = name.split("/")
                found.setdefault(head, []).append(rest)
    return found


def normalize(path: str) -> str:
    """Return the absolute path without `.`, `..`, doubled slashes and other spellings of the
    root."""
    path = posixpath.normpath("/" + path.lstrip("/"))
    return OWN_ROOT.sub("", path) or "/"


class Paths:
    """Judges the absolute paths of one workspace. Paths of a `remote` machine are not looked up on
    this one. `shipped` is true for unchanged files of the distribution; `safe` holds the only
    folders in which anything may be written."""

    def __init__(
        self,
        root: str,
        home: str,
        state: str,
        *,
        remote: bool = False,
        shipped: Callable[[str], bool] = lambda _: False,
        safe: SafeRoots | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.places = Places(root, home, state)
        self.root = self.places.root
        self.home = self.places.home
        self._remote = remote
        # These depend on the name alone, and scripts name the same paths again and again.
        self.why_sensitive = lru_cache(2048)(self._why_sensitive)
        self._runs_later = lru_cache(2048)(self.places.runs_later)
        self._shipped = shipped
        self.safe = safe or SafeRoots()
        self._guarded = GuardedFiles(self.home, self.places.state, now)

    def real(self, path: str) -> str:
        """Return the path with links followed; on a remote machine, the path itself."""
        return path if self._remote else real_path(path)

    def is_shipped(self, path: str) -> bool:
        """Whether it is an unchanged file of the distribution, and no link."""
        return not self._remote and self.real(path) == path and self._shipped(path)

    def exists(self, path: str, *, unknown: bool) -> bool:
        return unknown if self._remote else os.path.lexists(path)

    def of_another_person(self, path: str) -> bool:
        # The homes of another machine are not known here.
        return not self._remote and self.places.of_another_person(path)

    def twin(self, path: str) -> str:
        """Return the guarded file that this one is a hard link to, or ""."""
        return "" if self._remote else self._guarded.twin(path)

    def begins_like_key(self, path: str) -> bool:
        """Whether a file begins like a private key; only of names that keys often have."""
        if self._remote or not KEY_LIKE.search(path):
            return False
        try:
            if not (found := Path(path)).is_file():
                return False
            with found.open("rb") as file:
                return bool(KEY_START.match(file.read(64)))
        except (OSError, ValueError):
            return False

    def place(self, path: str) -> Place:
        """Return where an absolute path lies. A pattern counts as the folder before it."""
        if path.startswith("/dev/") and not is_inside(path, "/dev/shm"):
            return "disk" if DISK.match(path) else "device"
        if self.places.own_state(path):
            return "state"
        if path in CRITICAL:
            return "critical"
        if self.places.in_workspace(path):
            return "workspace"
        if table("system_folders").below(path.lower()):
            return "scratch" if self.places.is_scratch(path) else "system"
        if is_inside(path, self.home):
            return "home"
        return "scratch" if self.places.is_scratch(path) else "outside"

    def why_runs_later(self, path: str) -> str:
        """Return why other programs run the file or read settings from it later, or ""."""
        why = self._runs_later(path)
        return f"{path} {why}." if why else ""

    def is_root(self, path: str) -> bool:
        """Whether the path is the system, the home, a parent of the home, all homes, or everything
        in one of these."""
        bare = path
        while (head := posixpath.dirname(bare)) != bare and posixpath.basename(bare) in (
            "*",
            ".*",
            "**",
            ".[!.]*",
            ".??*",
            "{*,.*}",
        ):
            bare = head
        if bare in lists().roots or is_inside(self.home, bare) or HOMES.fullmatch(bare):
            return True
        if GLOB.search(bare):
            parts = bare.split("/")
            return any(
                len(names := root.split("/")) == len(parts) and all(map(_fits, names, parts))
                for root in (*lists().roots, self.home)
            )
        return False

    def covers_credentials(self, path: str) -> bool:
        """Whether the folder is so wide that credentials lie somewhere in it."""
        return (
            is_inside(self.home, path)
            or path in (f"{self.home}/.config", f"{self.home}/Library", "/etc", "/home", "/Users")
            or bool(HOMES.fullmatch(path))
        ) and not is_inside(path, self.root)

    def _why_sensitive(self, path: str) -> str:
        """Return why reading this path needs approval, or ""."""
        if secrets := self.places.secret(path):
            return f"{path} holds {secrets}."
        if self.is_own_state(path):
            return f"{path} is part of Hermes' own state."
        return self._may_match(path)

    def is_own_state(self, path: str) -> bool:
        """Whether it is Hermes' own state, except for results that tools may read back."""
        return self.places.own_state(path) and not self.places.readable_state(path)

    def _may_match(self, pattern: str) -> str:
        """Return why a pattern is sensitive, or "": it may stand for a credential."""
        if not GLOB.search(pattern):
            return ""
        low = pattern.lower()
        name = posixpath.basename(low)
        if self._may_be_store(low) or (
            name.startswith((".", "?", "[")) and fnmatchcase(".env", name)
        ):
            return f"{pattern} may match credentials."
        return ""

    def _may_be_store(self, low: str) -> bool:
        home, parts = self.home.lower().split("/"), low.split("/")
        if not all(map(_fits, home, parts)):
            return False
        first, *rest = parts[len(home) :] or ("",)
        if not first:
            return len(parts) <= len(home)
        # There are many stores: those of another first name need not be looked at.
        heads = home_stores() if GLOB.search(first) else {first} & home_stores().keys()
        return any(
            all(map(_fits, store, rest))
            for head in heads
            if _fits(head, first)
            for store in home_stores()[head]
        )


def _fits(name: str, pattern: str) -> bool:
    if name == pattern or not GLOB.search(pattern):
        return name == pattern
    # A shell's `*` leaves out what begins with a dot.
    return fnmatchcase(name, pattern) and not (name[:1] == "." and pattern[:1] != ".")


REGENERABLE = load_regex("regenerable_folder")
PRECIOUS = load_regex("precious_folder")
EVERYTHING = frozenset(("*", ".*", "**", "*.*", ".[!.]*", ".??*"))


def judge_read(paths: Paths, path: str) -> Finding | None:
    """Judge reading an absolute path; None when it is harmless."""
    if UNKNOWN in path and not path.split(UNKNOWN)[0].rstrip("/"):
        return None
    if paths.place(path) == "disk" or path in ("/dev/mem", "/dev/kmem", "/dev/port"):
        return _finding(Level.ASKED, "disk", f"It reads the raw device {path}.")
    for each in _names(paths, path):
        if paths.is_own_state(each):
            return _own_state(each)
        if why := paths.why_sensitive(each):
            return _finding(Level.ASKED, "credentials", why)
        if paths.of_another_person(each):
            return _finding(Level.ASKED, "outside", f"{each} belongs to another user.")
    if other := paths.twin(path):
        if paths.is_own_state(other):
            return _own_state(other)
        return _finding(Level.ASKED, "credentials", f"{path} is a hard link to {other}.")
    if paths.begins_like_key(path):
        return _finding(Level.ASKED, "credentials", f"{path} holds a private key.")
    return None


def judge_write(
    paths: Paths, path: str, *, append: bool = False, from_home: bool = False
) -> Finding | None:
    """Judge everything that creates, changes or replaces a file; None for harmless devices. For
    `from_home`, see `spelled_from_home`."""
    if path.startswith(("/dev/tcp/", "/dev/udp/")):
        return _finding(Level.ASKED, "network_out", f"It opens a connection through {path}.")
    if HARMLESS_DEVICE.match(path):
        return None
    return _within_safe_roots(paths, path, _write(paths, path, append, from_home))


def judge_delete(
    paths: Paths, path: str, *, recursive: bool = False, from_home: bool = False
) -> Finding:
    return _within_safe_roots(paths, path, _delete(paths, path, recursive, from_home))


def spelled_from_home(paths: Paths, text: str) -> bool:
    """Whether a command spells a path from the home while the workspace is the whole home. It then
    means one of the person's files, not a file of the work in hand. Tools resolve their paths
    first, so the spelling says nothing there."""
    if paths.root != paths.home:
        return False
    return text.startswith("~") or (text.startswith("/") and is_inside(text, paths.home))


def _within_safe_roots(paths: Paths, path: str, found: Finding) -> Finding:
    if found.level < Level.DENIED and (why := paths.safe.why_refused(path)):
        return _finding(Level.DENIED, "settings", why)
    return found


def _write(paths: Paths, path: str, append: bool, from_home: bool) -> Finding:
    if UNKNOWN in path and not _surely_here(paths, path):
        reason = "It writes a file whose name is known only at run time."
        return _finding(Level.ASKED, "overwrite", reason)
    if from_home:
        return _finding(Level.ASKED, "overwrite", f"It writes {path}, outside the workspace.")
    for each in _names(paths, path):
        if found := _write_one(paths, each, append):
            return found
    if other := paths.twin(path):
        if paths.is_own_state(other):
            return _own_state(other)
        return _finding(Level.ASKED, "credentials", f"{path} is a hard link to {other}.")
    if paths.places.is_agent_file(path):
        return _finding(Level.WORK, "agent_context", f"It changes {path}, which instructs agents.")
    return _finding(Level.WORK, "", "It changes files of the workspace.")


def _write_one(paths: Paths, path: str, append: bool) -> Finding | None:
    place = paths.place(path)
    if place == "disk":
        return _finding(Level.NEVER, "disk", f"it overwrites the disk {path}")
    if path in ("/proc/sysrq-trigger", "/dev/mem", "/dev/kmem"):
        return _finding(Level.NEVER, "power", "it stops the machine at once")
    if place == "critical" and not append:
        return _finding(Level.NEVER, "system_config", f"it overwrites {path}")
    if place == "state":
        return _own_state(path)
    if why := paths.why_runs_later(path):
        return _finding(Level.ASKED, "persistence", why)
    if why := paths.why_sensitive(path):
        return _finding(Level.ASKED, "credentials", why)
    if place in ("system", "critical"):
        return _finding(Level.ASKED, "system_config", f"It changes {path}, part of the system.")
    if place == "device":
        return _finding(Level.ASKED, "system_config", f"It writes to the device {path}.")
    if place in ("outside", "home"):
        return _finding(Level.ASKED, "overwrite", f"It writes {path}, outside the workspace.")
    return None


def _delete(paths: Paths, path: str, recursive: bool, from_home: bool) -> Finding:
    recursive = recursive or path.endswith("/**")
    if recursive and any(map(paths.is_root, _names(paths, path))):
        return _finding(Level.NEVER, "delete", f"it deletes {path} and everything in it")
    if UNKNOWN in path:
        reason = "It deletes something whose name is known only at run time."
        return _finding(Level.ASKED, "delete", reason)
    place = "outside" if from_home else paths.place(path)
    if place == "critical":
        return _finding(Level.NEVER, "delete", f"it deletes {path}")
    if place == "state":
        return _own_state(path)
    if paths.why_sensitive(path) or paths.why_runs_later(path):
        return _finding(Level.ASKED, "delete", f"It deletes {path}, which other programs need.")
    if place == "workspace":
        return _delete_in_workspace(paths, path, recursive)
    name, depth = posixpath.basename(path), path.count("/")
    if place == "scratch" and (depth > 2 or (depth > 1 and name not in EVERYTHING)):
        return _finding(Level.WORK, "", "It deletes temporary files.")
    return _finding(Level.ASKED, "delete", f"It deletes {path}, outside the workspace.")


def _delete_in_workspace(paths: Paths, path: str, recursive: bool) -> Finding:
    rest = posixpath.relpath(path, paths.root)
    top, _, below = rest.partition("/")
    all_of_it = top in EVERYTHING and (not below or below in EVERYTHING)
    if rest == "." or (all_of_it and recursive):
        return _finding(Level.ASKED, "delete", "It deletes the whole workspace.")
    if top == ".git":
        return _finding(Level.ASKED, "delete", "It deletes git history.")
    wide = recursive and not REGENERABLE.match(top) and (not below or below in EVERYTHING)
    if wide and (PRECIOUS.match(top) or paths.root == paths.home):
        return _finding(Level.ASKED, "delete", f"It deletes {path} and everything in it.")
    return _finding(Level.WORK, "", "It deletes files of the workspace.")


def _surely_here(paths: Paths, path: str) -> bool:
    """Whether the unknown part is only the end of a name in the workspace."""
    known = path.split(UNKNOWN)[0]
    folder = known if known.endswith("/") else posixpath.dirname(known)
    return paths.place(posixpath.normpath(folder or "/")) in ("workspace", "scratch")


def _names(paths: Paths, path: str) -> tuple[str, ...]:
    """Return the path, and where its links lead: a link in the workspace may lead to a
    credential."""
    if UNKNOWN in path or "\0" in path or path.startswith(("/dev/", "/proc/")):
        return (path,)
    real = paths.real(path)
    return (path,) if real == path else (path, real)


def _own_state(path: str) -> Finding:
    return _finding(Level.DENIED, "own_state", f"{path} is part of Hermes' own state.")


def _finding(level: Level, category: str, reason: str) -> Finding:
    return Finding(level=level, category=category, reason=reason)
