"""Starts the commands of one session: confined by the fastest means that works, or unconfined."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hermes.codec.values import Value, replace
from hermes.core.errors import ToolError
from hermes.workspaces.child import Spawn, spawn
from hermes.workspaces.confinement.reserved import ReservedNames, ReservedNamesGuard
from hermes.workspaces.confinement.scope import (
    SECRETS,
    ConfinementReport,
    ConfinementScope,
    repository_of,
)
from hermes.workspaces.files import find_program

if TYPE_CHECKING:
    from hermes.workspaces.confinement.bubblewrap import Bubblewrap
    from hermes.workspaces.confinement.landlock import Landlock

    Means = Bubblewrap | Landlock

Wanted = Literal["off", "auto", "bubblewrap", "landlock"]
# Container engines create one of these. Root in a container installs things for the whole
# container.
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")
_CONTAINER_FOLDERS = ("/usr/local", "/opt", "/srv", "/var/cache", "/var/lib", "/var/log", "/run")


class Confinement(Value):
    """The confinement that the user wants."""

    # "auto" takes the fastest means that works here, or none. A means that is named and missing
    # stops commands instead.
    wanted: Wanted = "off"
    network: bool = False
    # Allows ordinary work (see `ConfinementScope`).
    ordinary: bool = False
    # Invisible paths.
    hidden: tuple[str, ...] = ()
    # Paths outside the workspace that can be changed.
    writable: tuple[str, ...] = ()
    # Holds downloads of tools.
    cache: str = ""
    # If set, no command changes a file outside these folders, not even an unconfined one. Without
    # means to enforce that, it does not run.
    safe: tuple[str, ...] = ()


class CommandSandbox:
    """The confinement of one command; none without `means`."""

    def __init__(
        self, means: Means | None, scope: ConfinementScope, reserved: tuple[ReservedNames, ...]
    ) -> None:
        self._means = means
        self._scope = scope
        self._reserved = reserved

    @property
    def confines(self) -> bool:
        return self._means is not None

    def wrap(self, argv: Sequence[str], *, readable: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the arguments that start a program inside."""
        return self._means.wrap(argv, self._scope, readable) if self._means else tuple(argv)

    def starter(self, *, own: Sequence[str] = ()) -> Spawn:
        """Return a function that starts what `wrap` returned, or its keeper, which may also write
        the files `own`."""
        return partial(self._means.spawn, self._scope, own) if self._means else spawn

    def guards(self) -> list[ReservedNamesGuard]:
        """Return the guards of the reserved names for the command."""
        return [each.watch() for each in self._reserved] if self._means else []


class Sandbox:
    def __init__(
        self, confinement: Confinement, root: str, state: Path, env: Mapping[str, str]
    ) -> None:
        self._safe = tuple(map(os.path.realpath, confinement.safe))
        self._wanted: Wanted = confinement.wanted
        if self._safe and self._wanted == "off":
            self._wanted = "auto"
        self._search_path = env.get("PATH", os.defpath)
        private = str(state / "confined")
        container_root = os.getuid() == 0 and any(Path(mark).exists() for mark in _CONTAINER_MARKS)
        self.scope = ConfinementScope(
            root=root,
            home=os.path.realpath(env.get("HOME", "/")),
            private=private,
            cache=confinement.cache or f"{private}/cache",
            hidden=confinement.hidden,
            writable=tuple(map(os.path.realpath, confinement.writable)),
            readable=(str(state / "scratch"),),
            network=confinement.network,
            ordinary=confinement.ordinary,
            system=_CONTAINER_FOLDERS if container_root else (),
            safe=self._safe,
        )
        self._quarantine = state / "quarantine"
        self._means: Means | None = None
        self._entered = False
        self._reserved: tuple[ReservedNames, ...] = ()

    @property
    def wanted(self) -> bool:
        return self._wanted != "off"

    @property
    def confines(self) -> bool:
        return self._means is not None

    def prepare(self) -> None:
        """Choose the means once; this may take some milliseconds. Raises ToolError when a required
        one is missing: nothing runs less confined than the settings require."""
        if not self.wanted or self._entered:
            return
        self._means, obstacles = self._find_means()
        if self._means is None and self._safe:
            raise ToolError(
                f"Files may be changed in {', '.join(self._safe)} only, and nothing here enforces "
                f"that for commands: {'; '.join(obstacles)}. Ask the user to install bubblewrap or "
                "to change security.write_safe_roots."
            )
        if self._means is None and self._wanted != "auto":
            raise ToolError(
                f"The settings require confinement by {self._wanted}, which does not work here: "
                f"{'; '.join(obstacles)}. Ask the user to install it or to change the setting."
            )
        self._entered = True
        if self._means:
            fixed = self._means.fixes_names and not self.scope.ordinary
            self._reserved = (ReservedNames(self.scope.root, self._quarantine, fixed=fixed),)
            if repository := repository_of(self.scope.root):
                self.scope = replace(self.scope, repository=repository)
                self._reserved += (ReservedNames(repository, self._quarantine, bare=True),)

    def protection(self) -> ConfinementReport:
        """Return the confinement of the next command, as found on the system."""
        if not self.wanted:
            return ConfinementReport(kind="none", gaps=("confinement is disabled in the settings",))
        means, obstacles = self._find_means()
        if means is None:
            return ConfinementReport(kind="none", gaps=obstacles)
        return means.protection(self.scope)

    def environment(self, env: Mapping[str, str]) -> Mapping[str, str]:
        return self.scope.environment(env) if self._means else env

    def for_command(
        self, script: str, *, unconfined: bool = False, offline: bool = False
    ) -> CommandSandbox:
        """Return the sandbox of one command. An `unconfined` command is only kept from changing
        files outside the `safe` folders. An `offline` one has no network; with bubblewrap it still
        reaches servers that it starts itself."""
        means = None if unconfined and not self._safe else self._means
        if means is not None:
            self.scope.prepare()
        scope = self.scope
        if unconfined:
            # Everything is open except files that must not change.
            scope = replace(scope, ordinary=True, network=True, shown=SECRETS, writable=self._safe)
            return CommandSandbox(means, scope, ())
        if means and scope.ordinary:
            # Only confined commands need this import.
            from hermes.workspaces.confinement.programs import find_needs, make_folders

            needs = find_needs(script)
            if not self._safe:
                make_folders(scope.home, needs.folders)
            if needs.keys:
                scope = replace(scope, shown=needs.keys)
        if means and offline:
            scope = replace(scope, network=False)
            if self._wanted == "auto":
                means = find_means("bubblewrap", self._search_path)[0] or means
        return CommandSandbox(means, scope, self._reserved)

    def _find_means(self) -> tuple[Means | None, tuple[str, ...]]:
        mounts = self._wanted == "auto" and bool(self.scope.exposed_secrets())
        return find_means(self._wanted, self._search_path, mounts=mounts)


@lru_cache(maxsize=8)
def find_means(
    wanted: Wanted, search_path: str, *, mounts: bool = False
) -> tuple[Means | None, tuple[str, ...]]:
    """Return the fastest means that works here, and why faster ones do not. With `mounts`,
    something must be hidden that only bubblewrap can hide; in that case it is tried first."""
    order = ("bubblewrap", "landlock") if mounts else ("landlock", "bubblewrap")
    obstacles: list[str] = []
    for name in order if wanted == "auto" else (wanted,):
        # Imported only where confinement is wanted.
        found: Means | str
        if name == "bubblewrap":
            from hermes.workspaces.confinement.bubblewrap import find_bubblewrap

            found = find_bubblewrap(find_program("bwrap", search_path))
        else:
            from hermes.workspaces.confinement import landlock

            found = landlock.find_obstacle() or landlock.Landlock()
        if not isinstance(found, str):
            return found, tuple(obstacles)
        obstacles.append(found)
    return None, tuple(obstacles)
