"""The settings of plugins and what follows for each plugin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from hermes.codec.values import Value
from hermes.plugins.cell import Means, Sandbox, secrets_of
from hermes.plugins.found import FoundPlugin
from hermes.plugins.manifest import Isolation
from hermes.plugins.serving import Grants

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
