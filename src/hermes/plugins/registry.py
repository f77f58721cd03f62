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
    """State of one plugin. `surface` is what it registers, once it is loaded."""

    found: FoundPlugin
    status: Status
    fault: str = ""
    level: str = "process"
    protection: str = ""
    surface: Surface = Surface()


class PluginRegistry:
    """The plugins of a run and their processes. `serve` creates the handler of a plugin's requests;
    `reserved_names` are tool names that plugins may not use without permission."""

    def __init__(
        self,
        rules: PluginRules,
        places: SearchPaths,
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
        self._states = {key: self._first(each) for key, each in discover(places).items()}
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
            if name in (each.found.key, each.found.name):
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
        wanted = [state.found for state in states]
        slots = asyncio.Semaphore(AT_ONCE)
        surfaces = await asyncio.gather(
            *(self._surface(each, slots, known=known, start=start) for each in wanted)
        )
        names = {*self._reserved_names()}
        keys = {found.key for found in wanted}
        for other in self._loaded_states():
            if other.found.key not in keys:
                names |= {tool.name for tool in other.surface.tools}
        for found, surface in zip(wanted, surfaces, strict=True):
            if isinstance(surface, str):
                self._set(found, status="error", fault=surface)
            elif clash := self._clash(found, surface, names):
                self._set(found, status="error", fault=clash)
                await self._stop(found.key)
            else:
                names |= {tool.name for tool in surface.tools}
                self._set(found, status="loaded", surface=surface, fault="")

    def tools(self) -> list[PluginTool]:
        """Return the usable tools of all loaded plugins."""
        return [
            PluginTool(
                state.found.name,
                offer,
                partial(self.ready, state.found.key),
                seconds=self.rules.tool_timeout,
                trusted=state.found.trusted,
                sealed=self.is_sealed(state.found),
            )
            for state in self._loaded_states()
            for offer in state.surface.tools
            if offer.available and all(self.host.variables.get(n) for n in offer.requires_env)
        ]

    def running(self, key: str) -> RunningPlugin:
        """Return the plugin's process, started on first use."""
        found = self._states[key].found
        held = self._running.get(key)
        if held is None:
            held = self._running[key] = self._create_process(found)
        return held

    async def ready(self, key: str) -> RunningPlugin:
        """Return the process like `running`; reload a plugin in development whose files have
        changed."""
        found = self._states[key].found
        if self.rules.entry(found).development and self.rules.wants(found):
            now = hash_of(await asyncio.to_thread(read_contents, Path(found.path)))
            if now != found.hash:
                await self._stop(key)
                self._set(replace(found, hash=now), fault="")
                await self.load([self._states[key]])
                self.reloaded.add(key)
        return self.running(key)

    def data_dir(self, found: FoundPlugin) -> Path:
        """Return its data folder."""
        return Path(self.host.home, "plugin-data", found.key)

    def fail(self, key: str, why: str) -> None:
        """Mark a plugin whose registrations were rejected."""
        log.warning("a plugin cannot be joined", extra={"plugin": key, "why": why})
        self._set(self._states[key].found, status="error", fault=why)

    async def close(self) -> None:
        await asyncio.gather(*(self._stop(key) for key in tuple(self._running)))

    def is_sealed(self, found: FoundPlugin) -> bool:
        """Return whether no data given to the plugin can leave this machine."""
        rules, grants = self.rules, self.rules.grants(found)
        if rules.level(found) == "in_process" or grants.network or grants.paths:
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
                self._set(self._states[key].found, fault=str(fault))

    def _with_runtime_state(self, state: PluginState) -> PluginState:
        running = self._running.get(state.found.key)
        if running is None:
            return state
        given_up = isinstance(running, IsolatedPlugin) and running.given_up
        return replace(
            state,
            protection=running.protection,
            status="given up" if given_up else state.status,
        )

    def _set(self, found: FoundPlugin, **changes: object) -> None:
        self._states[found.key] = replace(self._states[found.key], found=found, **changes)

    def _first(self, found: FoundPlugin) -> PluginState:
        """Determine the state without running anything."""
        rules = self.rules
        status: Status = "on"
        fault = ""
        if not rules.wants(found):
            status, fault = "off", found.fault
        elif fault := load_obstacle(found, rules, self.host.version):
            status = "error"
        elif missing := missing_variables(found, rules, self.host.variables):
            status = "needs configuration"
            fault = f"Not set: {', '.join(missing)}; use `hermes config set NAME VALUE`."
        elif not found.trusted:
            try:
                found = replace(found, hash=hash_of(read_contents(Path(found.path))))
            except (ConfigError, OSError) as error:
                status, fault = "error", str(error)
            else:
                fault = self._consent_fault(found)
                status = "changed" if fault else "on"
        return PluginState(found=found, status=status, fault=fault, level=rules.level(found))

    def _consent_fault(self, found: FoundPlugin) -> str:
        agreed = self.consents.hash_of(found)
        if agreed == found.hash or self.rules.entry(found).development:
            return ""
        what = "have changed" if agreed else "are not approved yet"
        return f"Its files {what}; review it with `hermes plugins enable {found.key}`."

    def _clash(self, found: FoundPlugin, surface: Surface, names: set[str]) -> str:
        allowed = self.rules.entry(found).allow_tool_override
        for tool in surface.tools:
            if tool.name in names and not (tool.override and allowed):
                return (
                    f"There is another tool named {tool.name}; "
                    f"`hermes plugins enable {found.key} --allow-tool-override` replaces it."
                )
        return ""

    async def _surface(
        self, found: FoundPlugin, slots: asyncio.Semaphore, *, known: bool, start: bool
    ) -> Surface | str:
        apart = self.rules.level(found) == "process"
        if known and apart and (held := self._launcher.cached_surface(found)):
            return held
        if not start and apart:
            return "It is not in the cache and is not started now."
        try:
            async with slots:
                registered = await self.running(found.key).load()
            surface = surface_of(registered, found, self._scan, self._clean)
        except (PluginFault, ConfigError) as error:
            log.warning("a plugin failed", extra={"plugin": found.key, "why": str(error)})
            await self._stop(found.key)
            return str(error)
        if apart:
            self._launcher.cache_surface(found, surface)
        return surface

    def _create_process(self, found: FoundPlugin) -> RunningPlugin:
        serving, seconds = self._serve(found), self.rules.load_timeout
        if self.rules.level(found) == "in_process":
            return InProcessPlugin(
                found.name,
                lambda: self._launcher.start_message(found),
                serving,
                load_seconds=seconds,
            )
        return IsolatedPlugin(
            found.name,
            lambda: self._launcher.sandbox(found),
            serving,
            self._clock,
            load_seconds=seconds,
            overfull=lambda: quota_fault(self.data_dir(found), self.rules.data_mb),
            pulse=self.pulse,
        )
