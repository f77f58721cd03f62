"""The plugins of one run: their states, loading and calls."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Literal

from hermes.codec.values import Value, replace
from hermes.core.errors import ConfigError, NotFound
from hermes.core.world import Clock
from hermes.plugins.contents import hash_of, read_contents
from hermes.plugins.discovery import FoundPlugin, SearchPaths, discover
from hermes.plugins.in_process import InProcessPlugin
from hermes.plugins.isolated import IsolatedPlugin, LivenessCheck
from hermes.plugins.launch import PluginLauncher, quota_fault
from hermes.plugins.permissions import ConsentStore, PluginRules, load_obstacle, missing_variables
from hermes.plugins.protocol import PluginFault, PluginRequests, RunningPlugin
from hermes.plugins.sandbox import PluginHost, is_sandboxed
from hermes.plugins.surface import CleanSchema, PluginTool, ScanText, Surface, surface_of

log = logging.getLogger(__name__)

AT_ONCE = 4

Status = Literal["off", "on", "loaded", "error", "needs configuration", "changed", "given up"]


class PluginState(Value):
    """The state of one plugin."""

    plugin: FoundPlugin
    status: Status
    fault: str = ""
    level: str = "process"
    protection: str = ""
    surface: Surface = Surface()  # what it registers, once it is loaded


class PluginRegistry:
    """The plugins of a run and their processes. `serve` creates the handler of a plugin's requests;
    `reserved_names` are tool names that plugins may not use without permission."""

    def __init__(
        self,
        rules: PluginRules,
        search_paths: SearchPaths,
        host: PluginHost,
        clock: Clock,
        *,
        serve: Callable[[FoundPlugin], PluginRequests],
        scan: ScanText,
        clean: CleanSchema = lambda schema: schema,
        reserved_names: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self.rules = rules
        self.host = host
        self.consents = ConsentStore(Path(host.home))
        self._clock = clock
        self.pulse = LivenessCheck()
        self._serve = serve
        self._scan = scan
        self._clean = clean
        self._reserved_names = reserved_names
        self._states = {key: self._first(each) for key, each in discover(search_paths).items()}
        self._running: dict[str, RunningPlugin] = {}
        self._launcher = PluginLauncher(rules, host)
        # Plugins reloaded since the last check.
        self.reloaded: set[str] = set()

    @property
    def states(self) -> tuple[PluginState, ...]:
        return tuple(self._with_runtime_state(each) for each in self._states.values())

    def state(self, name: str) -> PluginState:
        """Find a plugin by key or name; raise NotFound."""
        for each in self._states.values():
            if name in (each.plugin.key, each.plugin.name):
                return self._with_runtime_state(each)
        raise NotFound(
            f"There is no plugin {name!r}; `hermes plugins list` shows all.",
            near=tuple(self._states),
        )

    def usable(self) -> Iterator[PluginState]:
        """Yield enabled, loadable plugins."""
        return (each for each in self._states.values() if each.status in ("on", "loaded"))

    async def load(
        self, states: Collection[PluginState], *, known: bool = True, start: bool = True
    ) -> None:
        """Load plugins. With `known`, cached surfaces are used without a start; without `start`,
        nothing else is. Failures are isolated."""
        wanted = [state.plugin for state in states]
        slots = asyncio.Semaphore(AT_ONCE)
        surfaces = await asyncio.gather(
            *(self._surface(each, slots, known=known, start=start) for each in wanted)
        )
        names = {*self._reserved_names()}
        keys = {plugin.key for plugin in wanted}
        for other in self._loaded_states():
            if other.plugin.key not in keys:
                names |= {tool.name for tool in other.surface.tools}
        for plugin, surface in zip(wanted, surfaces, strict=True):
            if isinstance(surface, str):
                self._set(plugin, status="error", fault=surface)
            elif clash := self._clash(plugin, surface, names):
                self._set(plugin, status="error", fault=clash)
                await self._stop(plugin.key)
            else:
                names |= {tool.name for tool in surface.tools}
                self._set(plugin, status="loaded", surface=surface, fault="")

    def tools(self) -> list[PluginTool]:
        """Return the usable tools of all loaded plugins."""
        return [
            PluginTool(
                state.plugin.name,
                offer,
                partial(self.ready, state.plugin.key),
                seconds=self.rules.tool_timeout,
                trusted=state.plugin.trusted,
                sealed=self.is_sealed(state.plugin),
            )
            for state in self._loaded_states()
            for offer in state.surface.tools
            if offer.available and all(self.host.variables.get(n) for n in offer.requires_env)
        ]

    def running(self, key: str) -> RunningPlugin:
        """Return the plugin's process, started on first use."""
        plugin = self._states[key].plugin
        held = self._running.get(key)
        if held is None:
            held = self._running[key] = self._create_process(plugin)
        return held

    async def ready(self, key: str) -> RunningPlugin:
        """Return the process like `running`; reload a plugin in development whose files have
        changed."""
        plugin = self._states[key].plugin
        if self.rules.entry(plugin).development and self.rules.wants(plugin):
            now = hash_of(await asyncio.to_thread(read_contents, Path(plugin.path)))
            if now != plugin.hash:
                await self._stop(key)
                self._set(replace(plugin, hash=now), fault="")
                await self.load([self._states[key]])
                self.reloaded.add(key)
        return self.running(key)

    def data_dir(self, plugin: FoundPlugin) -> Path:
        """Return its data folder."""
        return Path(self.host.home, "plugin-data", plugin.key)

    def fail(self, key: str, why: str) -> None:
        """Mark a plugin whose registrations were rejected."""
        log.warning(
            "the registrations of a plugin were rejected", extra={"plugin": key, "why": why}
        )
        self._set(self._states[key].plugin, status="error", fault=why)

    async def close(self) -> None:
        await asyncio.gather(*(self._stop(key) for key in tuple(self._running)))

    def is_sealed(self, plugin: FoundPlugin) -> bool:
        """Return whether no data given to the plugin can leave this machine."""
        rules, grants = self.rules, self.rules.grants(plugin)
        if rules.level(plugin) == "in_process" or grants.network or grants.paths:
            return False
        return is_sandboxed(rules.sandbox, rules.means, self.host.variables)

    def _loaded_states(self) -> Iterator[PluginState]:
        return (each for each in self._states.values() if each.status == "loaded")

    async def _stop(self, key: str) -> None:
        if (running := self._running.pop(key, None)) is not None:
            try:
                await running.close()
            except PluginFault as fault:
                log.warning("a plugin failed", extra={"plugin": key, "why": str(fault)})
                self._set(self._states[key].plugin, fault=str(fault))

    def _with_runtime_state(self, state: PluginState) -> PluginState:
        running = self._running.get(state.plugin.key)
        if running is None:
            return state
        given_up = isinstance(running, IsolatedPlugin) and running.given_up
        return replace(
            state,
            protection=running.protection,
            status="given up" if given_up else state.status,
        )

    def _set(self, plugin: FoundPlugin, **changes: object) -> None:
        self._states[plugin.key] = replace(self._states[plugin.key], plugin=plugin, **changes)

    def _first(self, plugin: FoundPlugin) -> PluginState:
        """Determine the state without running anything."""
        rules = self.rules
        status: Status = "on"
        fault = ""
        if not rules.wants(plugin):
            status, fault = "off", plugin.fault
        elif fault := load_obstacle(plugin, rules, self.host.version):
            status = "error"
        elif missing := missing_variables(plugin, rules, self.host.variables):
            status = "needs configuration"
            fault = f"Not set: {', '.join(missing)}; use `hermes config set NAME VALUE`."
        elif not plugin.trusted:
            try:
                plugin = replace(plugin, hash=hash_of(read_contents(Path(plugin.path))))
            except (ConfigError, OSError) as error:
                status, fault = "error", str(error)
            else:
                fault = self._consent_fault(plugin)
                status = "changed" if fault else "on"
        return PluginState(plugin=plugin, status=status, fault=fault, level=rules.level(plugin))

    def _consent_fault(self, plugin: FoundPlugin) -> str:
        agreed = self.consents.hash_of(plugin)
        if agreed == plugin.hash or self.rules.entry(plugin).development:
            return ""
        what = "have changed" if agreed else "are not approved yet"
        return f"Its files {what}; review it with `hermes plugins enable {plugin.key}`."

    def _clash(self, plugin: FoundPlugin, surface: Surface, names: set[str]) -> str:
        allowed = self.rules.entry(plugin).allow_tool_override
        for tool in surface.tools:
            if tool.name in names and not (tool.override and allowed):
                return (
                    f"There is another tool named {tool.name}; "
                    f"`hermes plugins enable {plugin.key} --allow-tool-override` replaces it."
                )
        return ""

    async def _surface(
        self, plugin: FoundPlugin, slots: asyncio.Semaphore, *, known: bool, start: bool
    ) -> Surface | str:
        apart = self.rules.level(plugin) == "process"
        if known and apart and (held := self._launcher.cached_surface(plugin)):
            return held
        if not start and apart:
            return "It is not in the cache and is not started now."
        try:
            async with slots:
                registered = await self.running(plugin.key).load()
            surface = surface_of(registered, plugin, self._scan, self._clean)
        except (PluginFault, ConfigError) as error:
            log.warning("a plugin failed", extra={"plugin": plugin.key, "why": str(error)})
            await self._stop(plugin.key)
            return str(error)
        if apart:
            self._launcher.cache_surface(plugin, surface)
        return surface

    def _create_process(self, plugin: FoundPlugin) -> RunningPlugin:
        serving, seconds = self._serve(plugin), self.rules.load_timeout
        if self.rules.level(plugin) == "in_process":
            return InProcessPlugin(
                plugin.name,
                lambda: self._launcher.start_message(plugin),
                serving,
                load_seconds=seconds,
            )
        return IsolatedPlugin(
            plugin.name,
            lambda: self._launcher.sandbox(plugin),
            serving,
            self._clock,
            load_seconds=seconds,
            overfull=lambda: quota_fault(self.data_dir(plugin), self.rules.data_mb),
            pulse=self.pulse,
        )
