"""Confinement by Landlock and a filter of system calls, for kernels that allow no namespaces.

Both bind the thread that asks for them and what it starts, so a thread of its own asks."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hermes.workspaces.child import FileAction, spawn
from hermes.workspaces.confinement.protection import Protection
from hermes.workspaces.confinement.scope import DOORS, Scope, below
from hermes.workspaces.confinement.seccomp import (
    INET,
    INET6,
    PACKET,
    UNIX,
    VSOCK,
    filter_program,
)

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION_FLAG = 1
_BENEATH = 1
_NO_NEW_PRIVILEGES, _SECCOMP, _SECCOMP_FILTER = 38, 22, 2
_CAPABILITY_VERSION = 0x20080522
# Before the third version files outside could be emptied.
LEAST_VERSION = 3

_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _CONTROL = 1 << 14, 1 << 15
_ALL_RIGHTS = {3: (1 << 15) - 1, 4: (1 << 15) - 1}
_LOOK = _EXECUTE | _READ | _LIST
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _CONTROL
_TCP = 3
_SCOPES = 3  # abstract sockets and signals

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx")


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
    """Commands stay in the machine's ordinary tree, but most of it cannot be opened. Reserved names
    can be changed in it, and are put back afterwards."""

    fixes_names = False

    def protection(self, scope: Scope) -> Protection:
        known = filter_program(()) is not None
        network = "the network is open" if scope.network else "no TCP"
        if known and not scope.network:
            network = "no network"
        return Protection(
            kind="landlock",
            details=(
                f"only {', '.join(scope.changeable())} and a private folder ($TMPDIR) can be "
                "changed",
                "keys, logins, browser profiles and the home of Hermes cannot be opened",
                f"no new privileges; signals only to its own processes; {network}",
                "hooks, start files and editor settings are put back after the command",
            ),
            gaps=(
                "other processes and the names of their programs can be seen",
                "a background process that changes a hook is only told",
                *(() if known else ("sockets of services and UDP are open on this processor",)),
                *(("a command can send what it can read",) if scope.network else ()),
            ),
        )

    def wrap(self, argv: Sequence[str], scope: Scope, readable: Sequence[str]) -> tuple[str, ...]:
        return tuple(argv)

    def spawn(
        self,
        program: str,
        argv: tuple[str, ...],
        env: Mapping[str, str],
        actions: Sequence[FileAction],
        scope: Scope,
        own: Sequence[str],
    ) -> int:
        outcome: list[int | BaseException] = []
        devices = [action[2] for action in actions if isinstance(action[2], str)]
        private = {**env, "TMPDIR": scope.temporary}

        def work() -> None:
            try:
                _restrict(scope, [*own, *devices])
                outcome.append(spawn(program, argv, private, actions))
            except BaseException as error:
                outcome.append(error)

        thread = threading.Thread(target=work, name="confined start")
        thread.start()
        thread.join()
        if isinstance(outcome[0], BaseException):
            raise outcome[0]
        return outcome[0]


def obstacle() -> str:
    """Why it cannot be used here; "" when it can."""
    if sys.platform != "linux":
        return "Landlock: only Linux has it"
    version = _version()
    if version < 1:
        return "Landlock: the kernel does not have it, or it is not switched on"
    if version < LEAST_VERSION:
        return f"Landlock: version {version} of the kernel is too old, {LEAST_VERSION} is needed"
    return ""


def _version() -> int:
    return _library().syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))  # type: ignore[no-any-return]


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _restrict(scope: Scope, own: Sequence[str]) -> None:
    """For this thread, for ever."""
    library, version = _library(), _version()
    rights = _ALL_RIGHTS.get(version, (1 << 16) - 1)
    attributes = _Ruleset(
        files=rights,
        network=_TCP if version >= 4 and not scope.network else 0,
        scopes=_SCOPES if version >= 6 else 0,
    )
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _checked(library.syscall(_CREATE, ctypes.byref(attributes), ctypes.c_size_t(size), 0))
    try:
        for path, granted in _rules(scope, own, rights):
            _add(library, ruleset, path, granted)
        _checked(library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _drop_capabilities(library)
        _checked(library.syscall(_RESTRICT, ruleset, 0))
    finally:
        os.close(ruleset)
    domains = (UNIX, PACKET, VSOCK) if scope.network else (UNIX, INET, INET6, PACKET, VSOCK)
    if code := filter_program(domains):
        program = _Filter(length=len(code) // 8, lines=code)
        _checked(library.prctl(_SECCOMP, _SECCOMP_FILTER, ctypes.byref(program), 0, 0))


def _drop_capabilities(library: ctypes.CDLL) -> None:
    """Root has some that reach past Landlock; without new privileges, no program gets them back."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    none = (ctypes.c_uint32 * 6)()
    _checked(library.capset(ctypes.byref(header), ctypes.byref(none)))


def _rules(scope: Scope, own: Sequence[str], rights: int) -> Iterator[tuple[str, int]]:
    # Also what is missing yet: a key that comes up later must not be in an open folder.
    secrets = scope.secrets(missing=True)
    for path in _around("/", [*secrets, *DOORS, "/tmp", "/var/tmp", "/dev"]):
        yield path, _LOOK
    if any(below(scope.home, folder) for folder in ("/tmp", "/var/tmp")):
        for path in _around(scope.home, secrets):
            yield path, _LOOK
    for path in (str(Path(__file__).parents[2]), sys.prefix):
        # Our own program may lie there too, and runs beside commands on a terminal.
        if any(below(path, folder) for folder in ("/tmp", "/var/tmp")):
            yield path, _LOOK
    changeable = scope.changeable()
    inside = [s for s in scope.secrets() if any(below(s, folder) for folder in changeable)]
    for folder in changeable:
        for path in _around(folder, inside):
            yield path, rights
    for path in (scope.private, scope.cache, "/dev/shm", *own):
        yield path, rights
    for name in _DEVICES:
        yield f"/dev/{name}", rights


def _around(top: str, closed: Sequence[str]) -> Iterator[str]:
    """What covers a folder but for the closed parts of it."""
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
        with contextlib.suppress(OSError), os.scandir(path) as entries:
            waiting += (entry.path for entry in entries if not entry.is_symlink())


def _add(library: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not Path(path).is_dir():
            rights &= _OF_FILES
        rule = _Beneath(rights=rights, folder=descriptor)
        _checked(library.syscall(_ADD, ruleset, _BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(descriptor)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"Landlock: {os.strerror(number)}")
    return result
