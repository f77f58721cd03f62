"""Confines commands with Landlock, which needs no namespaces and no helper program."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from hermes.core.concurrency import start_daemon_thread
from hermes.workspaces.child import FileAction, spawn
from hermes.workspaces.confinement.scope import (
    SOCKET_FOLDERS,
    TEMPORARY,
    ConfinementReport,
    ConfinementScope,
    below,
)
from hermes.workspaces.confinement.seccomp import INET, INET6, PACKET, UNIX, VSOCK, filter_program

EXECUTE, WRITE, READ, LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, CONTROL = 1 << 14, 1 << 15
LOOK = EXECUTE | READ | LIST
OF_FILES = EXECUTE | WRITE | READ | TRUNCATE | CONTROL

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx")


class LandlockLayout:
    """The rules of a scope, as paths with rights. `split` are folders that were opened entry by
    entry: a new entry in one of them makes the rules stale."""

    def __init__(self, scope: ConfinementScope, own: Sequence[str], rights: int) -> None:
        self.split: set[str] = set()
        # Missing secrets count too: a key that is created later must not lie in an open folder.
        secrets = scope.secrets(missing=True)
        more = () if scope.ordinary else (*SOCKET_FOLDERS, *TEMPORARY)
        visible = [*self._list_around("/", [*secrets, *more, "/dev"])]
        if not scope.ordinary:
            if _is_temporary(scope.home):
                visible += self._list_around(scope.home, secrets)
            # Hermes itself may lie there, and its terminal keeper runs beside commands.
            program = (str(Path(__file__).parents[2]), sys.prefix)
            visible += [path for path in program if _is_temporary(path)]
        shared = ("/dev/shm",) if scope.shared_memory else ()
        terminals = ("/dev/pts",) if scope.ordinary else ()
        devices = (f"/dev/{name}" for name in _DEVICES)
        changed = (*scope.own_folders, *shared, *own, *terminals, *devices)
        self.rules = (
            *((path, LOOK) for path in (*visible, *scope.readable)),
            *((path, rights) for path in (*self._list_writable(scope), *changed)),
        )

    def _list_writable(self, scope: ConfinementScope) -> Iterator[str]:
        """New files must be possible in open folders, so ordinary work does not split them;
        `ConfinementScope.exposed_secrets` returns what remains reachable."""
        closed = scope.secrets()
        for folder in scope.open_folders():
            inside = [s for s in closed if below(s, folder)]
            yield from (folder,) if scope.ordinary else self._list_around(folder, inside)
        for folder in scope.tool_folders():
            yield from self._list_around(folder, [s for s in closed if below(s, folder)])

    def _list_around(self, top: str, closed: Sequence[str]) -> Iterator[str]:
        """Return paths that cover a folder except for the closed parts."""
        shut = {*closed}
        split = {str(parent) for path in closed for parent in Path(path).parents}
        waiting = [top]
        while waiting:
            path = waiting.pop()
            if path in shut:
                continue
            if path not in split:
                yield path
                continue
            self.split.add(path)
            with contextlib.suppress(OSError), os.scandir(path) as entries:
                waiting += (entry.path for entry in entries if not entry.is_symlink())


def _is_temporary(path: str) -> bool:
    return any(below(path, folder) for folder in TEMPORARY)


_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION_FLAG = 1
_BENEATH = 1
_NO_NEW_PRIVILEGES, _SECCOMP, _SECCOMP_FILTER = 38, 22, 2
_CAPABILITY_VERSION = 0x20080522
# Before version 3, files outside could be truncated.
LEAST_VERSION = 3
_ALL_RIGHTS = {3: (1 << 15) - 1, 4: (1 << 15) - 1}
_TCP = 3
_SCOPES = 3  # abstract sockets and signals
# Capabilities that root keeps for ordinary work: owners and modes of files, other users, low ports.
_ORDINARY_CAPABILITIES = sum(1 << number for number in (0, 1, 3, 4, 5, 6, 7, 10))

MOST_RULESETS = 6
# A folder that changed in the moment of the scan may have got another entry since.
SETTLED_NS = 50_000_000


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scopes", ctypes.c_uint64),
    )


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("folder", ctypes.c_int32))


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_char_p))


class Landlock:
    """Commands stay in the machine's file tree, but cannot change or open most of it. Reserved
    names can be changed, and are restored afterwards."""

    fixes_names = False

    def __init__(self) -> None:
        self._rulesets: dict[ConfinementScope, _CachedRuleset] = {}
        self._lock = threading.Lock()

    def protection(self, scope: ConfinementScope) -> ConfinementReport:
        known = filter_program(()) is not None
        closed = "no network" if known else "no TCP"
        network = "the network is open" if scope.network else closed
        return ConfinementReport(
            kind="landlock",
            details=(
                f"only {scope.describe()} can be changed",
                "keys, logins, browser profiles and the home of Hermes cannot be opened",
                f"no new privileges; signals only to its own processes; {network}",
                "changes to hooks, start files and editor settings are reverted after the command",
            ),
            gaps=(
                *(
                    f"{path} lies in a folder that commands may use"
                    for path in scope.exposed_secrets()
                ),
                *(("sockets of services can be reached",) if scope.ordinary else ()),
                "other processes and the names of their programs can be seen",
                "hooks that a background process changes are reported, not reverted",
                *(() if known else ("sockets of services and UDP are open on this processor",)),
                *(("a command can send what it can read",) if scope.network else ()),
            ),
        )

    def wrap(
        self, argv: Sequence[str], scope: ConfinementScope, readable: Sequence[str]
    ) -> tuple[str, ...]:
        return tuple(argv)

    def spawn(
        self,
        scope: ConfinementScope,
        own: Sequence[str],
        program: str,
        argv: tuple[str, ...],
        env: Mapping[str, str],
        actions: Sequence[FileAction],
        /,
    ) -> int:
        devices = (action[2] for action in actions if isinstance(action[2], str))
        # The null device is open to all; any other terminal belongs to this command alone.
        more = [*own, *(path for path in devices if path != os.devnull)]
        variables = env if scope.ordinary else {**env, "TMPDIR": scope.temporary}
        with self._lock:
            ruleset = _CachedRuleset(scope, more) if more else self._ruleset(scope)

        def start() -> int:
            _restrict(scope, ruleset.descriptor)
            return spawn(program, argv, variables, actions)

        try:
            # The restrictions of a thread are permanent, so each start has a thread of its own.
            return start_daemon_thread(start).result()
        finally:
            if more:
                ruleset.close()

    def _ruleset(self, scope: ConfinementScope) -> _CachedRuleset:
        """Return a ruleset, reused while the folders stay the same: creating one takes longer than
        starting a program."""
        known = self._rulesets.get(scope)
        if known is not None and known.is_fresh():
            return known
        if known is not None:
            known.close()
        elif len(self._rulesets) >= MOST_RULESETS:
            self._rulesets.pop(next(iter(self._rulesets))).close()
        self._rulesets[scope] = made = _CachedRuleset(scope, ())
        return made


class _CachedRuleset:
    """A ruleset in the kernel, and the state of the folders when it was made."""

    def __init__(self, scope: ConfinementScope, own: Sequence[str]) -> None:
        version = _version()
        rights = _ALL_RIGHTS.get(version, (1 << 16) - 1)
        layout = LandlockLayout(scope, own, rights)
        named = (*scope.own_folders, *scope.readable)
        self._folders = (*layout.split, *scope.open_folders(), *named)
        self._split = layout.split
        self._marks = self._snapshot()
        now = time.time_ns()
        self._settled = all(now - mark[2] > SETTLED_NS for mark in self._marks)
        self.descriptor = _create_ruleset(layout.rules, scope, rights, version)

    def is_fresh(self) -> bool:
        return self._settled and self._snapshot() == self._marks

    def close(self) -> None:
        os.close(self.descriptor)

    def _snapshot(self) -> list[tuple[int, int, int]]:
        marks = []
        for folder in self._folders:
            try:
                found = os.stat(folder)  # noqa: PTH116
            except OSError:
                marks.append((0, 0, 0))
                continue
            changed = found.st_mtime_ns if folder in self._split else 0
            marks.append((found.st_dev, found.st_ino, changed))
        return marks


def find_obstacle() -> str:
    """Return why it cannot be used here, or ""."""
    if sys.platform != "linux":
        return "Landlock: needs Linux"
    version = _version()
    if version < 1:
        return "Landlock: the kernel lacks it, or it is not enabled"
    if version < LEAST_VERSION:
        return f"Landlock: version {version} of the kernel is too old, {LEAST_VERSION} is needed"
    return ""


@lru_cache(maxsize=1)
def _version() -> int:
    flag = ctypes.c_uint32(_VERSION_FLAG)
    return int(_library().syscall(_CREATE, None, ctypes.c_size_t(0), flag))


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _create_ruleset(
    rules: Iterable[tuple[str, int]], scope: ConfinementScope, rights: int, version: int
) -> int:
    library = _library()
    attributes = _Ruleset(
        files=rights,
        network=_TCP if version >= 4 and not scope.network else 0,
        scopes=_SCOPES if version >= 6 else 0,
    )
    size = ctypes.c_size_t(8 if version < 4 else 16 if version < 6 else 24)
    ruleset = _check_result(library.syscall(_CREATE, ctypes.byref(attributes), size, 0))
    try:
        for path, allowed in rules:
            try:
                descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                allowed &= -1 if Path(path).is_dir() else OF_FILES
                rule = _Beneath(rights=allowed, folder=descriptor)
                _check_result(library.syscall(_ADD, ruleset, _BENEATH, ctypes.byref(rule), 0))
            finally:
                os.close(descriptor)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def _restrict(scope: ConfinementScope, ruleset: int) -> None:
    """Restrict this thread permanently."""
    library = _library()
    _check_result(library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    # Capabilities of root bypass Landlock; without new privileges, no program regains them.
    # Capabilities that are not held are never kept.
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    data = (ctypes.c_uint32 * 6)()
    if scope.ordinary:
        _check_result(library.capget(ctypes.byref(header), ctypes.byref(data)))
        for at in range(6):
            data[at] &= _ORDINARY_CAPABILITIES if at < 3 else 0
    _check_result(library.capset(ctypes.byref(header), ctypes.byref(data)))
    _check_result(library.syscall(_RESTRICT, ruleset, 0))
    domains = [PACKET, VSOCK]
    if not scope.network:
        domains += [INET, INET6]
    if not (scope.network and scope.ordinary):
        domains.append(UNIX)
    if code := filter_program(tuple(domains)):
        program = _Filter(length=len(code) // 8, lines=code)
        _check_result(library.prctl(_SECCOMP, _SECCOMP_FILTER, ctypes.byref(program), 0, 0))


def _check_result(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return result
