"""Which paths Landlock opens to a confined command, and with which rights.

Landlock can only permit. To keep a path closed, it is left out, and the folders around it are
opened one by one."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes.codec.values import Value
from hermes.workspaces.confinement.scope import DOORS, TEMPORARY, ConfinementScope, below

EXECUTE, WRITE, READ, LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, CONTROL = 1 << 14, 1 << 15
LOOK = EXECUTE | READ | LIST
OF_FILES = EXECUTE | WRITE | READ | TRUNCATE | CONTROL

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx")


class LandlockRule(Value):
    path: str
    rights: int


class LandlockLayout:
    """The rules of a scope. `split` are folders that were opened entry by entry: a new entry in one
    of them makes the rules stale."""

    def __init__(self, scope: ConfinementScope, own: Sequence[str], rights: int) -> None:
        self.split: set[str] = set()
        self.rules = tuple(self._rules(scope, own, rights))

    def _rules(
        self, scope: ConfinementScope, own: Sequence[str], rights: int
    ) -> Iterator[LandlockRule]:
        for path in self._list_secrets(scope):
            yield LandlockRule(path=path, rights=LOOK)
        for path in self._list_writable(scope):
            yield LandlockRule(path=path, rights=rights)
        for path in scope.readable:
            yield LandlockRule(path=path, rights=LOOK)
        shared = ("/dev/shm",) if scope.shared_memory else ()
        for path in (*scope.own_folders, *shared, *own):
            yield LandlockRule(path=path, rights=rights)
        for device in ("/dev/pts", *(f"/dev/{name}" for name in _DEVICES)):
            if scope.ordinary or device != "/dev/pts":
                yield LandlockRule(path=device, rights=rights)

    def _list_secrets(self, scope: ConfinementScope) -> Iterator[str]:
        # Missing secrets count too: a key that is created later must not lie in an open folder.
        secrets = scope.secrets(missing=True)
        closed = [*secrets, "/dev"] if scope.ordinary else [*secrets, *DOORS, *TEMPORARY, "/dev"]
        yield from self._list_around("/", closed)
        if scope.ordinary:
            return
        if _is_temporary(scope.home):
            yield from self._list_around(scope.home, secrets)
        for path in (str(Path(__file__).parents[2]), sys.prefix):
            # Hermes itself may lie there, and its terminal keeper runs beside commands.
            if _is_temporary(path):
                yield path

    def _list_writable(self, scope: ConfinementScope) -> Iterator[str]:
        """New files must be possible in open folders, so ordinary work does not split them;
        `Scope.exposed` reports what remains reachable."""
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
