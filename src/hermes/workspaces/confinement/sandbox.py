"""How the commands of one session are started on this machine: confined by the best means there
is, or openly."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hermes.codec.values import Value, replace
from hermes.core.errors import ToolError
from hermes.workspaces.child import FileAction, Spawn, spawn
from hermes.workspaces.confinement.protection import Protection
from hermes.workspaces.confinement.reserved import Guard, Reserved
from hermes.workspaces.confinement.scope import Scope
from hermes.workspaces.files import find_program

if TYPE_CHECKING:
    from hermes.workspaces.confinement.bubblewrap import Bubblewrap
    from hermes.workspaces.confinement.landlock import Landlock

    Means = Bubblewrap | Landlock

Wanted = Literal["off", "auto", "bubblewrap", "landlock"]


class Confinement(Value):
    """What a person wants. `auto` takes bubblewrap, else Landlock, else nothing, and `protection`
    says which; a means that is wanted by name and missing stops commands instead. `hidden` paths
    are out of sight, `writable` ones can be changed although they are outside of the workspace;
    `cache` is where tools keep downloads."""

    wanted: Wanted = "off"
    network: bool = False
    hidden: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    cache: str = ""


class Sandbox:
    def __init__(
        self, confinement: Confinement, root: str, state: Path, env: Mapping[str, str]
    ) -> None:
        self._wanted = confinement.wanted
        self._search_path = env.get("PATH", os.defpath)
        private = str(state / "confined")
        self.scope = Scope(
            root=root,
            home=os.path.realpath(env.get("HOME", "/")),
            private=private,
            cache=confinement.cache or f"{private}/cache",
            hidden=confinement.hidden,
            writable=tuple(map(os.path.realpath, confinement.writable)),
            network=confinement.network,
        )
        self._quarantine = state / "quarantine"
        self._means: Means | None = None
        self._reserved = Reserved(root, self._quarantine, fixed=False)

    @property
    def wanted(self) -> bool:
        return self._wanted != "off"

    @property
    def confines(self) -> bool:
        return self._means is not None

    @property
    def notes(self) -> str:
        return self.scope.notes

    def enter(self) -> None:
        """Find the means, once; it takes some milliseconds. ToolError when a wanted one is
        missing: nothing runs less confined than was asked for."""
        if not self.wanted or self._means:
            return
        self._means, obstacles = find_means(self._wanted, self._search_path)
        if self._means is None and self._wanted != "auto":
            raise ToolError(
                f"Commands are to be confined by {self._wanted}, which does not work here: "
                f"{'; '.join(obstacles)}. Ask the user to install it or to change the setting."
            )
        if self._means:
            self.scope.prepare()
            fixed = self._means.fixes_names
            self._reserved = Reserved(self.scope.root, self._quarantine, fixed=fixed)

    def grant_network(self, granted: bool = True) -> None:
        self.scope = replace(self.scope, network=granted)

    def protection(self) -> Protection:
        """What holds for the next command; asked of the system, not of the settings."""
        if not self.wanted:
            return Protection(kind="none", gaps=("confinement is switched off in the settings",))
        means, obstacles = find_means(self._wanted, self._search_path)
        if means is None:
            return Protection(kind="none", gaps=obstacles)
        return means.protection(self.scope)

    def environment(self, env: Mapping[str, str]) -> Mapping[str, str]:
        return self.scope.environment(env) if self._means else env

    def wrap(self, argv: Sequence[str], *, readable: Sequence[str] = ()) -> tuple[str, ...]:
        """The words that start a program, inside."""
        return self._means.wrap(argv, self.scope, readable) if self._means else tuple(argv)

    def starter(self, *, own: Sequence[str] = ()) -> Spawn:
        """Starts what `wrap` returned, or a keeper of it that may also write the files `own`."""
        if self._means is None:
            return spawn
        return partial(_start, self._means, self.scope, own)

    def guard(self) -> Guard | None:
        """What looks after the reserved names during one command."""
        return self._reserved.watch() if self._means else None


def _start(
    means: Means,
    scope: Scope,
    own: Sequence[str],
    program: str,
    argv: tuple[str, ...],
    env: Mapping[str, str],
    actions: Sequence[FileAction],
    /,
) -> int:
    return means.spawn(program, argv, env, actions, scope, own)


@lru_cache(maxsize=8)
def find_means(wanted: Wanted, search_path: str) -> tuple[Means | None, tuple[str, ...]]:
    """The best one that works here, tried for real, and what is wrong with the better ones."""
    # Only those who want to be confined pay for it.
    from hermes.workspaces.confinement import bubblewrap, landlock

    obstacles: list[str] = []
    if wanted in ("auto", "bubblewrap"):
        program = find_program("bwrap", search_path)
        why = bubblewrap.obstacle(program) if program else "bubblewrap: it is not installed"
        if program and not why:
            return bubblewrap.Bubblewrap(program), ()
        obstacles.append(why)
    if wanted in ("auto", "landlock"):
        why = landlock.obstacle()
        if not why:
            return landlock.Landlock(), tuple(obstacles)
        obstacles.append(why)
    return None, tuple(obstacles)
