"""Administration of plugins: list, create, install, enable, update and remove."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, Literal, get_args

from hermes.codec.values import Value
from hermes.config.edit import write_settings
from hermes.config.migrations import REMOVED
from hermes.config.run_context import RunContext
from hermes.core.errors import ConfigError, UsageError
from hermes.plugins.contents import hash_of, read_contents
from hermes.plugins.discovery import FoundPlugin
from hermes.plugins.health import PluginCheck, check_all
from hermes.plugins.install import (
    CodeFinding,
    FetchedPlugin,
    fetch_plugin,
    install_plugin,
    read_record,
    remove_plugin,
    scan_code,
)
from hermes.plugins.manifest import FILE, NAME
from hermes.plugins.registry import PluginRegistry, PluginState

ScaffoldKind = Literal[
    "tool", "hook", "command", "image_gen", "memory", "web", "tts", "stt", "context_engine",
    "platform",
]  # fmt: skip
KINDS: tuple[str, ...] = get_args(ScaffoldKind)
GRANTS = ("network", "llm", "processes")
_WITHOUT_CATEGORY = ("tool", "hook", "command")
_TEST_START = """\
import importlib.util
from pathlib import Path

spec = importlib.util.spec_from_file_location("plugin", Path(__file__).parents[1] / "__init__.py")
plugin = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plugin)


"""


class PluginRow(Value):
    """One plugin in a list."""

    key: str
    source: str
    kind: str
    version: str
    enabled: bool
    state: str
    isolation: str
    tools: int
    hooks: int
    overrides: str = ""
    fault: str = ""


class PluginDetails(Value):
    """Details of one plugin. `agreed` is the hash that the user approved."""

    row: PluginRow
    name: str
    description: str
    place: str
    author: str
    homepage: str
    license: str
    provides: dict[str, tuple[str, ...]]
    uses_tools: tuple[str, ...]
    variables: tuple[str, ...]
    unset: tuple[str, ...]
    wants: tuple[str, ...]
    grants: dict[str, Any]
    dependencies: tuple[str, ...]
    hash: str
    agreed: str
    installed_from: str
    findings: tuple[CodeFinding, ...]


class PluginAdmin:
    def __init__(self, run: RunContext, plugins: PluginRegistry) -> None:
        self._run = run
        self._plugins = plugins
        self._folder = run.home.root / "plugins"

    def rows(self) -> list[PluginRow]:
        return [self._row(state) for state in self._plugins.states]

    def describe(self, name: str) -> PluginDetails:
        state = self._plugins.state(name)
        plugin, manifest = state.plugin, state.plugin.manifest
        if manifest is None:
            raise ConfigError(f"The plugin {plugin.key} is unusable: {plugin.fault}")
        contents = read_contents(Path(plugin.path))
        record = read_record(Path(plugin.path))
        known = self._plugins.host.variables
        grants = self._plugins.rules.grants(plugin)
        return PluginDetails(
            row=self._row(state),
            name=manifest.name,
            description=manifest.description,
            place=plugin.path,
            author=manifest.author,
            homepage=manifest.homepage,
            license=manifest.license,
            provides={
                "tools": manifest.provides_tools,
                "hooks": manifest.provides_hooks,
                "commands": manifest.provides_commands,
                "skills": manifest.provides_skills,
            },
            uses_tools=manifest.uses_tools,
            variables=manifest.variables,
            unset=tuple(each for each in manifest.variables if not known.get(each)),
            wants=manifest.wants,
            grants={name: getattr(grants, name) for name in (*GRANTS, "paths", "env")},
            dependencies=manifest.dependencies,
            hash=hash_of(contents),
            agreed=self._plugins.consents.hash_of(plugin),
            installed_from=record.source if record else "",
            findings=scan_code(contents),
        )

    def enable(
        self,
        name: str,
        *,
        isolation: str = "",
        allow_tool_override: bool = False,
        grants: Sequence[str] = (),
    ) -> PluginDetails:
        """Approve the current files and load them from the next session on."""
        about = self.describe(name)
        plugin = self._plugins.state(name).plugin
        blocked = self._run.settings.plugins.block_on_scan == "high"
        if blocked and any(each.level == "high" for each in about.findings):
            raise UsageError(
                f"{plugin.key} was not enabled because of scan findings (plugins.block_on_scan); "
                f"`hermes plugins info {plugin.key}` shows them."
            )
        entry = ("plugins", "entries", plugin.key)
        current = self._plugins.rules.entry(plugin).grants
        changes: dict[tuple[str, ...], Any] = _grant_changes(
            entry, grants, {"paths": list(current.paths), "env": list(current.env)}
        )
        if isolation:
            changes[(*entry, "isolation")] = isolation
        if allow_tool_override:
            changes[(*entry, "allow_tool_override")] = True
        changes |= self._list_changes(plugin, on=True)
        if not plugin.trusted:
            self._plugins.consents.agree(plugin, about.hash, self._run.world.clock.now())
        write_settings(self._run.home, changes)
        return about

    def disable(self, name: str) -> str:
        plugin = self._plugins.state(name).plugin
        write_settings(self._run.home, self._list_changes(plugin, on=False))
        return plugin.key

    async def fetch(self, source: str, ref: str) -> FetchedPlugin:
        """Fetch the plugin into memory without running it."""
        folder = await asyncio.to_thread(tempfile.TemporaryDirectory, prefix="hermes-plugin-")
        try:
            return await fetch_plugin(source, ref, Path(folder.name) / "clone", self._run.env)
        finally:
            await asyncio.to_thread(folder.cleanup)

    def install(self, fetched: FetchedPlugin, *, force: bool) -> Path:
        return install_plugin(fetched, self._folder, force=force)

    async def update(self, name: str) -> tuple[str, tuple[str, ...]]:
        """Update the plugin and return the changed files; a changed plugin needs new approval."""
        plugin = self._plugins.state(name).plugin
        record = read_record(Path(plugin.path))
        if record is None:
            raise UsageError(
                f"{plugin.key} was not installed by `hermes plugins install`; update it yourself."
            )
        if record.ref:
            raise UsageError(
                f"{plugin.key} is pinned to {record.ref}; install it again without --ref."
            )
        fetched = await self.fetch(record.source, "")
        if fetched.key != plugin.key:
            raise UsageError(
                f"{record.source} now contains {fetched.key}, not {plugin.key}; remove the old "
                "plugin and install the new one."
            )
        before = read_contents(Path(plugin.path))
        names = {*before, *fetched.contents}
        changed = sorted(n for n in names if before.get(n) != fetched.contents.get(n))
        if changed:
            install_plugin(fetched, self._folder, force=True)
        return plugin.key, tuple(changed)

    def list_updatable(self) -> list[str]:
        """List installed plugins that are not pinned."""
        records = {
            state.plugin.key: read_record(Path(state.plugin.path))
            for state in self._plugins.states
            if state.plugin.source == "user"
        }
        return [key for key, record in records.items() if record and not record.ref]

    def remove(self, name: str) -> str:
        plugin = self._plugins.state(name).plugin
        if plugin.source != "user":
            raise UsageError(
                f"{plugin.key} is {plugin.source}; use `hermes plugins disable` instead."
            )
        remove_plugin(Path(plugin.path))
        self._plugins.consents.withdraw(plugin.key)
        changes = self._list_changes(plugin, on=False)
        del changes["plugins", "disabled"]
        if plugin.key in self._run.settings.plugins.entries:
            changes["plugins", "entries", plugin.key] = REMOVED
        write_settings(self._run.home, changes)
        return plugin.key

    def new(self, name: str, kind: ScaffoldKind) -> tuple[Path, ...]:
        category = "platforms" if kind == "platform" else kind
        inner = name if kind in _WITHOUT_CATEGORY else f"{category}/{name}"
        return create_plugin(self._folder / inner, name, kind)

    async def doctor(self) -> list[PluginCheck]:
        return await check_all(self._plugins)

    def _row(self, state: PluginState) -> PluginRow:
        plugin, surface = state.plugin, state.surface
        manifest, loaded = plugin.manifest, state.status == "loaded"
        return PluginRow(
            key=plugin.key,
            source=plugin.source,
            kind=manifest.kind if manifest else "",
            version=manifest.version if manifest else "",
            enabled=state.status != "off",
            state=state.status,
            isolation=state.level,
            tools=len(surface.tools if loaded else manifest.provides_tools if manifest else ()),
            hooks=len(surface.hooks if loaded else manifest.provides_hooks if manifest else ()),
            overrides=plugin.overrides,
            fault=state.fault,
        )

    def _list_changes(self, plugin: FoundPlugin, *, on: bool) -> dict[tuple[str, ...], Any]:
        """Return the new lists of enabled and disabled plugins. Bundled plugins are listed only
        when disabled."""
        own, names = self._run.settings.plugins, (plugin.key, plugin.name)
        enabled = [each for each in own.enabled if each not in names]
        disabled = [each for each in own.disabled if each not in names]
        if on:
            enabled.append(plugin.key)
        elif plugin.trusted:
            disabled.append(plugin.key)
        return {
            ("plugins", "enabled"): enabled or REMOVED,
            ("plugins", "disabled"): disabled or REMOVED,
        }


def _grant_changes(
    entry: tuple[str, ...], grants: Sequence[str], current: dict[str, Any]
) -> dict[tuple[str, ...], Any]:
    """Parse grants: `network`, `llm`, `processes`, `path=FOLDER`, `env=NAME`."""
    changes: dict[tuple[str, ...], Any] = {}
    for each in grants:
        kind, _, value = each.partition("=")
        if kind in GRANTS and not value:
            changes[(*entry, "grants", kind)] = True
        elif kind in ("path", "env") and value:
            name = "paths" if kind == "path" else "env"
            current[name] = [*current[name], value]
            changes[(*entry, "grants", name)] = current[name]
        else:
            raise UsageError(
                f"Unknown grant {each!r}; use {', '.join(GRANTS)}, path=FOLDER or env=NAME."
            )
    return changes


def create_plugin(folder: Path, name: str, kind: ScaffoldKind) -> tuple[Path, ...]:
    """Write the files into the new `folder` and return them."""
    if not re.fullmatch(NAME, name):
        raise UsageError(
            f"{name!r} is not a valid plugin name: use lower-case letters, digits, -, _."
        )
    if folder.exists():
        raise UsageError(f"{folder} already exists; choose another name.")
    template = files("hermes.plugins").joinpath("templates", f"{kind}.txt").read_text("utf-8")
    plain = re.sub(r"[^a-z0-9_]", "_", name)
    filled = Template(template).substitute(name=name, tool=f"{plain}_hello", command=name)
    manifest, code, test = re.split(r"\n--- \S+\n", filled)
    texts = {FILE: manifest, "__init__.py": code, f"tests/test_{plain}.py": _TEST_START + test}
    for file, text in texts.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tuple(folder / file for file in texts)
