"""The sandbox of an isolated plugin: visible files, environment and resource limits."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Literal

from hermes.codec.values import Value
from hermes.config.child_environment import is_providers
from hermes.core.errors import ConfigError
from hermes.plugins.contents import remove_copy
from hermes.plugins.protocol import Grants
from hermes.workspaces.child import dup2_action, open_action
from hermes.workspaces.confinement.sandbox import CommandSandbox, find_means
from hermes.workspaces.confinement.scope import RESOLVER, ConfinementScope, below, outermost

Sandbox = Literal["auto", "require", "off"]
Means = Literal["auto", "bubblewrap", "landlock"]

CHILD = Path(__file__).with_name("inside") / "child.py"
LINK = 3
MOST_LOG_BYTES = 1_000_000
# System folders in `/`; all others are private and hidden.
_SYSTEM = frozenset(
    "bin sbin lib lib32 lib64 libx32 usr etc nix gnu opt dev proc sys tmp run boot".split()
)
LIMITS: dict[str, int] = {
    "address_space": 1 << 30,
    "files": 256,
    "file_size": 256 << 20,
    "cpu_seconds": 3_600,
    "core": 0,
}
MOST_PROCESSES = 64
_NUMBERS = count(1)
_PASSED_ON = ("LANG", "LC_ALL", "LC_CTYPE", "TZ")


class PluginHost(Value):
    """Facts about the host."""

    home: str
    person: str
    variables: dict[str, str]  # those of the process and of `.env`
    version: str
    profile: str = "default"
    mask: Callable[[str], str] = str  # redacts secrets in plugin logs


class PluginSandbox:
    """Starts the process of one plugin. Of the variables of the host only `secrets` and a few
    harmless ones are passed on."""

    UNCONFINED = "resource limits only"

    def __init__(
        self,
        key: str,
        host: PluginHost,
        grants: Grants,
        *,
        copy: str,  # the folder of its code
        data: str,  # the folder it starts in
        secrets: dict[str, str],
        sandbox: Sandbox = "auto",
        means: Means = "auto",  # forces a mechanism
    ) -> None:
        self._host = host
        self._grants = grants
        self._data = data
        self._secrets = secrets
        flat = key.replace("/", "--")
        self._log = Path(host.home, "logs", "plugins", f"{flat}.log")
        self._private = _private_folder(host.home, flat)
        self._scope = _build_scope(host, grants, copy, data, str(self._private))
        found, obstacles = find_means(means, host.variables.get("PATH", os.defpath))
        self._means = None if sandbox == "off" else found
        if self._means is None and sandbox == "require":
            why = "; ".join(obstacles)
            raise ConfigError(f"It must run in a sandbox, which is not available: {why}.")

    @property
    def protection(self) -> str:
        if self._means is None:
            return self.UNCONFINED
        network = "network open" if self._grants.network else "no network"
        return f"{type(self._means).__name__.lower()}, {network}"

    def limits(self) -> dict[str, int]:
        """Return resource limits. The process limit counts all processes of the user, so existing
        ones are added."""
        if not self._grants.processes:
            return LIMITS
        return {**LIMITS, "processes": _tasks_of_person() + MOST_PROCESSES}

    def start(self, link: int) -> int:
        """Start the process with `link` as descriptor 3; return its pid. Raise OSError when that
        fails."""
        for folder in (Path(self._data), self._log.parent):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._scope.prepare()
        command = CommandSandbox(self._means, self._scope, ())
        argv = command.wrap((sys.executable, "-I", "-B", str(CHILD)))
        variables = self._host.variables
        environment = {
            **{name: variables[name] for name in _PASSED_ON if name in variables},
            **self._secrets,
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": self._data,
            "TMPDIR": self._scope.temporary,
            "PYTHONUNBUFFERED": "1",
        }
        if self._log.exists() and self._log.stat().st_size > MOST_LOG_BYTES:
            self._log.unlink()
        self._log.touch(mode=0o600)
        with self._log.open("ab") as log:
            actions = [
                open_action(0, os.devnull, os.O_RDONLY),
                open_action(1, os.devnull, os.O_WRONLY),
                dup2_action(log.fileno(), 2),
                dup2_action(link, LINK),
            ]
            return command.starter()(argv[0], argv, environment, actions)

    def clear(self) -> None:
        """Delete the private folder and redact secrets in the log."""
        remove_copy(self._private)
        with contextlib.suppress(OSError):
            text = self._log.read_text("utf-8", "replace")
            if (clean := self._host.mask(text)) != text:
                self._log.write_text(clean)


def _build_scope(
    host: PluginHost, grants: Grants, copy: str, data: str, private: str
) -> ConfinementScope:
    granted = _resolve_grants(grants.paths, host.person, host.home)
    # Grants are inside hidden folders, or are one.
    hidden = {*_private_folders(), host.person, host.home}
    hidden = {each for each in hidden if not any(below(each, path) for path in granted)}
    readable = (copy, *_of_python(host.home))
    return ConfinementScope(
        root=data,
        home=os.path.realpath(host.person),
        private=private,
        cache=f"{private}/cache",
        hidden=tuple(sorted({*hidden, host.home} - {"/"})),
        writable=granted,
        readable=(*readable, RESOLVER) if grants.network else readable,
        network=grants.network,
        shared_memory=False,
    )


def is_sandboxed(sandbox: Sandbox, means: Means, variables: Mapping[str, str]) -> bool:
    """Return whether plugins are sandboxed beyond resource limits."""
    path = variables.get("PATH", os.defpath)
    return sandbox != "off" and find_means(means, path)[0] is not None


def secrets_of(
    wanted: tuple[str, ...], grants: Grants, variables: Mapping[str, str]
) -> dict[str, str]:
    """Return the declared variables. Keys of model providers need an explicit grant."""
    return {
        name: variables[name]
        for name in wanted
        if name in variables and (name in grants.env or not is_providers(name))
    }


def _private_folder(home: str, name: str) -> Path:
    """Return a new private folder per start, so that links left by a plugin cannot affect the next
    start."""
    folder = Path(home, "cache", "plugins", "cells")
    for left in folder.glob("*.*.*"):
        owner = left.name.split(".")[-2]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            remove_copy(left)
    return folder / f"{name}.{os.getpid()}.{next(_NUMBERS)}"


def _resolve_grants(paths: Sequence[str], person: str, home: str) -> tuple[str, ...]:
    """Resolve granted folders without nested ones, because a plugin that can write the outer one
    could plant a link. They must not overlap the Hermes home."""
    whole = [path.replace("~", person, 1) if path[:1] == "~" else path for path in paths]
    resolved: list[str] = []
    for path in outermost(map(os.path.abspath, whole)):
        real = os.path.realpath(path)
        if below(real, home) or below(home, real):
            raise ConfigError(
                f"{path} cannot be granted: it overlaps the Hermes home; choose another."
            )
        if not Path(real).is_dir():
            raise ConfigError(f"{path} cannot be granted: it is not a folder; choose another.")
        resolved.append(real)
    return tuple(resolved)


def _tasks_of_person() -> int:
    """Count the user's threads."""
    count, own = 0, os.getuid()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            if folder.stat().st_uid == own:
                status = (folder / "status").read_text()
                count += int(status.partition("Threads:")[2].split(maxsplit=1)[0])
    return count


@lru_cache(maxsize=1)
def _private_folders() -> tuple[str, ...]:
    """Return non-system folders in `/` and private folders of services."""
    with os.scandir("/") as entries:
        named = [e.path for e in entries if not e.is_symlink() and e.name not in _SYSTEM]
    return (*sorted(named), "/etc/ssl/private", "/etc/ssh")


def _of_python(home: str) -> tuple[str, ...]:
    """Return the folders of the interpreter and its packages."""
    program = Path(os.path.realpath(sys.executable))
    folders = {
        os.path.realpath(sys.prefix),
        os.path.realpath(sys.base_prefix),
        str(program.parent),
        str(Path(__file__).resolve().parents[2]),
        *(os.path.realpath(each) for each in sys.path if each.endswith("-packages")),
    }
    return tuple(sorted(each for each in folders if each != "/" and not below(home, each)))
