"""Confines commands with bubblewrap: own namespaces, a read-only machine, hidden secrets."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hermes.workspaces.child import FileAction, dup2_action, spawn
from hermes.workspaces.confinement import reserved
from hermes.workspaces.confinement.scope import (
    RESOLVER,
    SOCKET_FOLDERS,
    ConfinementReport,
    ConfinementScope,
    below,
    is_folder,
)
from hermes.workspaces.confinement.seccomp import PACKET, VSOCK, filter_program

_FILTER = 10
_PROBE_SECONDS = 5.0
_MOUNTS = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
_NAMESPACES = ("--unshare-user", "--unshare-pid", "--die-with-parent", "--cap-drop", "ALL")
# Each namespace takes the kernel time to tear down.
_MORE_NAMESPACES = ("--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--disable-userns")
# Capabilities that root keeps for ordinary work in its own namespace: owners, modes, other users,
# low ports.
_ORDINARY_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID")


class Bubblewrap:
    """Each command gets its own mount tree, and everything that it starts ends with it. In a scope
    that is not `ordinary`, existing reserved names cannot be changed."""

    fixes_names = True

    def __init__(self, program: str) -> None:
        self._program = program

    def protection(self, scope: ConfinementScope) -> ConfinementReport:
        network = "the network is open" if scope.network else "no network"
        return ConfinementReport(
            kind="bubblewrap",
            details=(
                f"only {scope.describe()} can be changed",
                "keys, logins, browser profiles and the home of Hermes are hidden",
                f"own process and user namespaces; no new privileges; {network}",
                "changes to hooks, start files and editor settings are reverted after the command",
            ),
            gaps=(
                "the rest of the home folder can be read",
                *(("sockets of services can be reached",) if scope.ordinary else ()),
                *(("a command can send what it can read",) if scope.network else ()),
            ),
        )

    def wrap(
        self, argv: Sequence[str], scope: ConfinementScope, readable: Sequence[str]
    ) -> tuple[str, ...]:
        return (self._program, *_arguments(scope, readable), "--", *argv)

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
        """Start the program. The seccomp filter is passed in a descriptor, so it also works for a
        keeper."""
        code = filter_program((PACKET, VSOCK)) or b""
        reading, writing = os.pipe()
        try:
            os.write(writing, code)
            os.close(writing)
            return spawn(program, argv, env, [*actions, dup2_action(reading, _FILTER)])
        finally:
            os.close(reading)


def find_bubblewrap(program: str | None) -> Bubblewrap | str:
    """Try it for real; return why it cannot be used here instead."""
    if program is None:
        return "bubblewrap: not installed"
    tried = (program, *_NAMESPACES, *_MOUNTS, "--unshare-net", "--", "true")
    try:
        done = subprocess.run(tried, capture_output=True, timeout=_PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap: {error}"
    if done.returncode:
        return done.stderr.decode("utf-8", "replace").strip()
    return Bubblewrap(program)


def _arguments(scope: ConfinementScope, readable: Sequence[str]) -> Iterator[str]:
    yield from _NAMESPACES
    if not scope.ordinary:
        yield from _MORE_NAMESPACES
    elif os.getuid() == 0:
        for capability in _ORDINARY_CAPABILITIES:
            yield from ("--cap-add", f"CAP_{capability}")
    if not scope.network:
        yield "--unshare-net"
    if filter_program(()) is not None:
        yield from ("--seccomp", str(_FILTER))
    yield from _MOUNTS
    if not scope.ordinary:
        for folder in SOCKET_FOLDERS:
            if Path(folder).is_dir() and not Path(folder).is_symlink():
                yield from ("--tmpfs", folder)
        if scope.network and Path(RESOLVER).is_dir():
            yield from ("--ro-bind", RESOLVER, RESOLVER)
        for folder in ("/tmp", "/var/tmp"):
            yield from ("--bind", scope.temporary, folder)
    if scope.home != "/":
        yield from ("--ro-bind-try", scope.home, scope.home)
    changeable = scope.writable_folders()
    secrets = scope.secrets()
    inside = [s for s in secrets if any(below(s, folder) for folder in changeable)]
    for secret in secrets:
        if secret not in inside:
            yield from _hide_secret(secret)
    for folder in changeable:
        yield from ("--bind", folder, folder)
    for folder in () if scope.ordinary else (scope.root, *scope.writable):
        yield from _protect_reserved(folder)
    for secret in inside:
        yield from _hide_secret(secret)
    for folder in scope.own_folders:
        yield from ("--bind", folder, folder)
    for path in (*scope.readable, *readable):
        yield from ("--ro-bind-try", path, path)


def _hide_secret(secret: str) -> tuple[str, ...]:
    """Hide a path. A hidden folder can still be traversed, because something visible may lie in
    it."""
    if is_folder(secret):
        return ("--perms", "0111", "--tmpfs", secret)
    return ("--ro-bind", "/dev/null", secret)


def _protect_reserved(folder: str) -> Iterator[str]:
    """Keep reserved names unchanged. A repository is its own mount, so that it cannot be moved away
    together with its hooks."""
    repository = Path(folder, ".git")
    if repository.is_dir() and not repository.is_symlink():
        (repository / "hooks").mkdir(exist_ok=True)
        yield from ("--bind", str(repository), str(repository))
    elif repository.is_file():
        yield from ("--ro-bind", str(repository), str(repository))
    for name in (*reserved.FILES, *reserved.FOLDERS):
        path = Path(folder, name)
        if path.exists() and not path.is_symlink():
            yield from ("--ro-bind", str(path), str(path))
