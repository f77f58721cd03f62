"""Classifies the paths of commands: patterns, roots, disks. `places` knows whose they are."""

from __future__ import annotations

import os.path
import posixpath
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache
from typing import Literal

from hermes.policy.patterns import regex
from hermes.policy.places.links import GuardedFiles
from hermes.policy.places.places import Places, SafeRoots, lists, table

Place = Literal[
    "workspace", "scratch", "outside", "system", "critical", "device", "disk", "state", "home"
]

CRITICAL = frozenset(
    ("/etc/passwd", "/etc/shadow", "/etc/group", "/etc/gshadow", "/etc/sudoers", "/etc/fstab")
)
HOMES = regex(r"^(/home/[^/]+|/root|/Users/[^/]+)(?=/|$)")
DISK = regex(
    r"^/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|mapper/|dm-|md|zd|nbd|sr\d|sg\d|root$|block/|bsg/"
    r"|mtd|ubi|pmem|bcache|drbd|rbd|dasd|fioa|cciss/|loop\d|ram\d|st\d)"
)
HARMLESS_DEVICE = regex(r"^/dev/(null|zero|full|u?random|std(in|out|err)|tty|fd/\d+|ptmx?)$")
KEY_FILE = regex(r"^id_(rsa|dsa|ecdsa|ed25519)(_\w+)?$|\.(kdbx|p12|pfx|keystore|jks)$")
OWN_ROOT = regex(r"^/proc/[^/]+/root(?=/|$)")
GLOB = regex(r"[*?\[]")
_MOST_KEPT = 2048


@cache
def home_stores() -> dict[str, list[list[str]]]:
    """The places of a home that hold credentials, by their first name."""
    found: dict[str, list[list[str]]] = {}
    for groups in (lists().home_folders, lists().home_files):
        for group in groups.values():
            for name in group:
                head, *rest = name.split("/")
                found.setdefault(head, []).append(rest)
    return found


def normalize(path: str) -> str:
    """An absolute path without `.`, `..`, doubled slashes and other spellings of the root."""
    path = posixpath.normpath("/" + path.lstrip("/"))
    return OWN_ROOT.sub("", path) or "/"


def is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class Paths:
    """Absolute paths of one workspace. Paths of a `far` machine are not looked up on this one.
    `shipped` is true for unchanged files of the distribution; `safe` holds the only folders in
    which anything may be written."""

    def __init__(
        self,
        root: str,
        home: str,
        state: str,
        *,
        far: bool = False,
        shipped: Callable[[str], bool] = lambda _: False,
        safe: SafeRoots | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.places = Places(root, home, state)
        self.root = self.places.root
        self.home = self.places.home
        self._far = far
        self._sensitive: dict[str, str] = {}
        self._shipped = shipped
        self.safe = safe or SafeRoots()
        self._guarded = GuardedFiles(self.home, self.places.state, now)

    def real(self, path: str) -> str:
        """The path with links followed; on a far machine, the path itself."""
        return path if self._far else os.path.realpath(path)

    def shipped(self, path: str) -> bool:
        """Whether it is an unchanged file of the distribution, and no link."""
        return not self._far and self.real(path) == path and self._shipped(path)

    def exists(self, path: str, *, unknown: bool) -> bool:
        return unknown if self._far else os.path.lexists(path)

    def of_another_person(self, path: str) -> bool:
        # The homes of another machine are not known here.
        return not self._far and self.places.of_another_person(path)

    def twin(self, path: str) -> str:
        """The guarded file that this one is a hard link to, or nothing."""
        return "" if self._far else self._guarded.twin(path)

    def place(self, path: str) -> Place:
        """Where an absolute path lies. A pattern counts as the folder before it."""
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
        """Why other programs run or obey the file later, or nothing."""
        why = self.places.runs_later(path)
        return f"{path} {why}." if why else ""

    def is_root(self, path: str) -> bool:
        """The system, the home, what the home lies in, all homes, or everything in one of these."""
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
            return any(_same(root, bare) for root in (*lists().roots, self.home))
        return False

    def covers_credentials(self, path: str) -> bool:
        """A folder so wide that credentials lie somewhere in it."""
        return (
            is_inside(self.home, path)
            or path in (f"{self.home}/.config", f"{self.home}/Library", "/etc", "/home", "/Users")
            or bool(HOMES.fullmatch(path))
        ) and not is_inside(path, self.root)

    def why_sensitive(self, path: str) -> str:
        """Why reading this path needs approval, or nothing."""
        # Depends on the name alone, and scripts name the same paths again and again.
        if path not in self._sensitive:
            if len(self._sensitive) >= _MOST_KEPT:
                self._sensitive.clear()
            self._sensitive[path] = self._holding(path)
        return self._sensitive[path]

    def _holding(self, path: str) -> str:
        if words := self.places.secret(path):
            return f"{path} holds {words}."
        if self.is_own_state(path):
            return f"{path} is part of Hermes' own state."
        return self._may_match(path)

    def is_own_state(self, path: str) -> bool:
        """Whether it is Hermes' own state, except for results that tools may read back."""
        return self.places.own_state(path) and not self.places.readable_state(path)

    def _may_match(self, pattern: str) -> str:
        """A pattern that could stand for a credential counts as one."""
        if not GLOB.search(pattern):
            return ""
        low = pattern.lower()
        name = posixpath.basename(low)
        if self._may_be_store(low) or (
            name.startswith((".", "?", "[")) and fnmatchcase(".env", name)
        ):
            return f"{pattern} may stand for credentials."
        return ""

    def _may_be_store(self, low: str) -> bool:
        home, parts = self.home.lower().split("/"), low.split("/")
        if not all(map(_component, home, parts)):
            return False
        first, *rest = parts[len(home) :] or ("",)
        if not first:
            return len(parts) <= len(home)
        # There are many stores: those of another first name need not be looked at.
        heads = home_stores() if GLOB.search(first) else {first} & home_stores().keys()
        return any(
            all(map(_component, store, rest))
            for head in heads
            if _component(head, first)
            for store in home_stores()[head]
        )


def _touches(store: str, pattern: str) -> bool:
    """Whether the pattern matches the store, something in it, or a folder around it."""
    pairs = zip(store.split("/"), pattern.split("/"), strict=False)
    return all(_component(name, part) for name, part in pairs)


def _same(path: str, pattern: str) -> bool:
    return path.count("/") == pattern.count("/") and _touches(path, pattern)


def _component(name: str, pattern: str) -> bool:
    if name == pattern or not GLOB.search(pattern):
        return name == pattern
    # A shell's `*` leaves out what begins with a dot.
    return fnmatchcase(name, pattern) and not (name[:1] == "." and pattern[:1] != ".")
