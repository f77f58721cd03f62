"""Settings, grants and approvals of plugins."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from hermes.codec.atomic_files import PRIVATE, replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.config.extension_settings import PluginEntrySettings, PluginSettings
from hermes.core.errors import ConfigError
from hermes.plugins.discovery import FoundPlugin
from hermes.plugins.protocol import Grants
from hermes.plugins.sandbox import Means, secrets_of


class Consent(Value):
    """Approval of one plugin at this hash."""

    hash: str
    source: str
    at: float = 0


class _ConsentFile(Value):
    plugins: dict[str, Consent] = {}
    projects: dict[str, str] = {}


class ConsentStore:
    """The approvals of the user, in two files of the home: plugins by key, project folders by path.
    An unreadable file counts as no approval."""

    def __init__(self, home: Path) -> None:
        self._plugins = home / "plugin-consents.json"
        self._projects = home / "trusted_projects.json"

    def hash_of(self, plugin: FoundPlugin) -> str:
        """Return the approved hash or "". Approvals of project plugins are per project."""
        if plugin.source == "project":
            return _read(self._projects).projects.get(plugin.path, "")
        held = _read(self._plugins).plugins.get(plugin.key)
        return held.hash if held and held.source == plugin.source else ""

    def agree(self, plugin: FoundPlugin, hash: str, at: float = 0) -> None:
        if plugin.source == "project":
            projects = {**_read(self._projects).projects, plugin.path: hash}
            _write(self._projects, _ConsentFile(projects=projects))
            return
        consent = Consent(hash=hash, source=plugin.source, at=at)
        plugins = {**_read(self._plugins).plugins, plugin.key: consent}
        _write(self._plugins, _ConsentFile(plugins=plugins))

    def withdraw(self, key: str) -> None:
        plugins = dict(_read(self._plugins).plugins)
        if plugins.pop(key, None):
            _write(self._plugins, _ConsentFile(plugins=plugins))


def _read(file: Path) -> _ConsentFile:
    try:
        return decode(_ConsentFile, file.read_bytes())
    except (OSError, DecodeError):
        return _ConsentFile()


def _write(file: Path, data: _ConsentFile) -> None:
    try:
        replace_file(file, encode(data), mode=PRIVATE)
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be written ({error.strerror}); make it writable."
        ) from error


Level = Literal["process", "in_process"]
# These kinds are part of the host's own work and cannot be isolated.
_INSIDE = ("platform", "exclusive")


class PluginRules(PluginSettings):
    """The settings, and what they mean for a plugin. `means` forces a sandbox mechanism."""

    means: Means = "auto"

    def entry(self, plugin: FoundPlugin) -> PluginEntrySettings:
        return (
            self.entries.get(plugin.key) or self.entries.get(plugin.name) or PluginEntrySettings()
        )

    def wants(self, plugin: FoundPlugin) -> bool:
        """Return whether the plugin is enabled, explicitly or as a bundled default."""
        names = (plugin.key, plugin.name)
        if any(name in self.disabled for name in names):
            return False
        own = plugin.manifest
        if plugin.trusted and own and own.kind != "standalone" and not own.opt_in:
            return True
        return not self.safe_mode and any(name in self.enabled for name in names)

    def level(self, plugin: FoundPlugin) -> Level:
        """Return the isolation; a manifest may only request more of it."""
        own = self.entry(plugin).isolation
        wished = plugin.manifest.isolation if plugin.manifest else ""
        if wished == "process" or own == "process":
            return "process"
        return "in_process" if plugin.trusted or own == "in_process" else "process"

    def grants(self, plugin: FoundPlugin) -> Grants:
        granted = self.entry(plugin).grants
        return Grants(
            network=granted.network,
            llm=granted.llm or plugin.trusted,
            processes=granted.processes,
            paths=granted.paths,
            env=plugin.manifest.variables if plugin.trusted and plugin.manifest else granted.env,
            uses_tools=plugin.manifest.uses_tools if plugin.manifest else (),
        )


def load_obstacle(plugin: FoundPlugin, rules: PluginRules, version: str) -> str:
    """Return why an enabled plugin cannot be loaded, or ""."""
    manifest = plugin.manifest
    if manifest is None:
        return plugin.fault
    if manifest.kind in _INSIDE and rules.level(plugin) == "process":
        return (
            f"A plugin of kind {manifest.kind} must run inside Hermes; "
            f"run `hermes plugins enable {plugin.key} --isolation in_process` if you trust it."
        )
    if manifest.requires_hermes and not satisfies(version, manifest.requires_hermes):
        return f"It needs Hermes {manifest.requires_hermes}; this is {version}."
    return ""


def missing_variables(
    plugin: FoundPlugin, rules: PluginRules, variables: Mapping[str, str]
) -> tuple[str, ...]:
    """Return required variables that are not set or not granted."""
    if plugin.manifest is None:
        return ()
    secrets = secrets_of(plugin.manifest.variables, rules.grants(plugin), variables)
    return tuple(
        each.name
        for each in plugin.manifest.requires_env
        if each.required and not secrets.get(each.name)
    )


_CONDITION = re.compile(r"(>=|<=|==|!=|>|<)(.*)")
_COMPARE: dict[str, Callable[[list[int], list[int]], bool]] = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
    ">": operator.gt, "<": operator.lt,
}  # fmt: skip


def satisfies(version: str, wanted: str) -> bool:
    """Check conditions like `>=0.1, <2`; invalid ones are not met."""
    for condition in filter(None, map(str.strip, wanted.split(","))):
        parsed = _CONDITION.fullmatch(condition)
        if parsed is None:
            return False
        pairs = [*zip_longest(_numbers(version), _numbers(parsed[2]), fillvalue=0)]
        if not _COMPARE[parsed[1]]([own for own, _ in pairs], [other for _, other in pairs]):
            return False
    return True


def _numbers(version: str) -> list[int]:
    return [int(re.sub(r"\D", "", part) or 0) for part in version.strip().split(".")]
