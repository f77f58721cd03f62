"""Settings, grants and approvals of plugins."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.core.errors import ConfigError
from hermes.plugins.discovery import FoundPlugin
from hermes.plugins.manifest import Isolation
from hermes.plugins.protocol import Grants
from hermes.plugins.sandbox import Means, Sandbox, secrets_of


class Consent(Value):
    """Approval of one plugin at this hash."""

    hash: str
    source: str
    at: float = 0


class _ConsentFile(Value):
    plugins: dict[str, Consent] = {}
    projects: dict[str, str] = {}


class ConsentStore:
    """Two files in the home: plugins by key, project folders by path. An unreadable file counts
    as no approval."""

    def __init__(self, home: Path) -> None:
        self._plugins = home / "plugin-consents.json"
        self._projects = home / "trusted_projects.json"

    def hash_of(self, found: FoundPlugin) -> str:
        """Returns the approved hash or "". Approvals of project plugins are per project."""
        if found.source == "project":
            return self._read(self._projects).projects.get(found.place, "")
        held = self._read(self._plugins).plugins.get(found.key)
        return held.hash if held and held.source == found.source else ""

    def agree(self, found: FoundPlugin, hash: str, at: float = 0) -> None:
        if found.source == "project":
            projects = self._read(self._projects).projects
            self._write(self._projects, _ConsentFile(projects={**projects, found.place: hash}))
            return
        held = self._read(self._plugins).plugins
        consent = Consent(hash=hash, source=found.source, at=at)
        self._write(self._plugins, _ConsentFile(plugins={**held, found.key: consent}))

    def withdraw(self, key: str) -> None:
        held = self._read(self._plugins).plugins
        if key in held:
            left = {name: each for name, each in held.items() if name != key}
            self._write(self._plugins, _ConsentFile(plugins=left))

    def _read(self, file: Path) -> _ConsentFile:
        try:
            return decode(_ConsentFile, file.read_bytes())
        except (OSError, DecodeError):
            return _ConsentFile()

    def _write(self, file: Path, data: _ConsentFile) -> None:
        partial = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            partial.write_bytes(encode(data))
            partial.chmod(0o600)
            partial.replace(file)
        except OSError as error:
            raise ConfigError(f"Cannot write {file}: {error.strerror}.") from error


Level = Literal["process", "in_process"]
# These kinds are part of the host's own work and cannot be isolated.
_INSIDE = ("platform", "exclusive")


class GrantSettings(Value):
    """Grants as written in the settings."""

    network: bool = False
    paths: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    llm: bool = False
    processes: bool = False


class PluginEntry(Value):
    isolation: Isolation = ""
    allow_tool_override: bool = False
    development: bool = False
    grants: GrantSettings = GrantSettings()
    config: dict[str, Any] = {}


class PluginRules(Value):
    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    hook_timeout: float = 30
    load_timeout: float = 20
    tool_timeout: float = 120
    data_mb: int = 512
    sandbox: Sandbox = "auto"
    means: Means = "auto"
    block_on_scan: Literal["", "high"] = ""
    allow_override: tuple[str, ...] = ()
    safe_mode: bool = False
    project: bool = False
    entries: dict[str, PluginEntry] = {}

    def entry(self, found: FoundPlugin) -> PluginEntry:
        return self.entries.get(found.key) or self.entries.get(found.name) or PluginEntry()

    def wants(self, found: FoundPlugin) -> bool:
        """Returns whether the plugin is enabled, explicitly or as a bundled default."""
        names = (found.key, found.name)
        if any(name in self.disabled for name in names):
            return False
        own = found.manifest
        if found.trusted and own and own.kind != "standalone" and not own.opt_in:
            return True
        return not self.safe_mode and any(name in self.enabled for name in names)

    def level(self, found: FoundPlugin) -> Level:
        """Returns the isolation; a manifest may only request more of it."""
        own = self.entry(found).isolation
        wished = found.manifest.isolation if found.manifest else ""
        if wished == "process" or own == "process":
            return "process"
        return "in_process" if found.trusted or own == "in_process" else "process"

    def grants(self, found: FoundPlugin) -> Grants:
        given = self.entry(found).grants
        return Grants(
            network=given.network,
            llm=given.llm or found.trusted,
            processes=given.processes,
            paths=given.paths,
            env=found.manifest.variables if found.trusted and found.manifest else given.env,
            uses_tools=found.manifest.uses_tools if found.manifest else (),
        )


def load_obstacle(found: FoundPlugin, rules: PluginRules, version: str) -> str:
    """Returns why an enabled plugin cannot be loaded, or ""."""
    manifest = found.manifest
    if manifest is None:
        return found.fault
    if manifest.kind in _INSIDE and rules.level(found) == "process":
        return (
            f"A plugin of kind {manifest.kind} must run inside Hermes; "
            f"run `hermes plugins enable {found.key} --isolation in_process` if you trust it."
        )
    if manifest.requires_hermes and not satisfies(version, manifest.requires_hermes):
        return f"It needs Hermes {manifest.requires_hermes}; this is {version}."
    return ""


def missing_variables(
    found: FoundPlugin, rules: PluginRules, variables: Mapping[str, str]
) -> tuple[str, ...]:
    """Returns required variables that are not set or not granted."""
    if found.manifest is None:
        return ()
    given = secrets_of(found.manifest.variables, rules.grants(found), variables)
    return tuple(
        each.name
        for each in found.manifest.requires_env
        if each.required and not given.get(each.name)
    )


def satisfies(version: str, wanted: str) -> bool:
    """Checks conditions like `>=0.1, <2`; invalid ones are not met."""
    own = _numbers(version)
    return all(_holds(own, each.strip()) for each in wanted.split(",") if each.strip())


def _holds(own: tuple[int, ...], condition: str) -> bool:
    for sign in (">=", "<=", "==", "!=", ">", "<"):
        if condition.startswith(sign):
            other = _numbers(condition.removeprefix(sign))
            length = max(len(own), len(other))
            one, two = _pad(own, length), _pad(other, length)
            match sign:
                case ">=":
                    return one >= two
                case "<=":
                    return one <= two
                case "==":
                    return one == two
                case "!=":
                    return one != two
                case ">":
                    return one > two
                case _:
                    return one < two
    return False


def _numbers(version: str) -> tuple[int, ...]:
    parts: Iterable[str] = version.strip().split(".")
    return tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in parts)


def _pad(numbers: tuple[int, ...], length: int) -> tuple[int, ...]:
    return numbers + (0,) * (length - len(numbers))
