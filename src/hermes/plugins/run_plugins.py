"""The plugins of one run: offers their tools, hooks, commands, skills and providers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from hermes.core.errors import UsageError
from hermes.skills.session_index import plugin_skills_folder

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.core.session import Session
    from hermes.hooks.registry import Hooks
    from hermes.images.registry import ImageProviders
    from hermes.memory.provider import MemoryProvider
    from hermes.models.models import Models
    from hermes.plugins.protocol import CallKind
    from hermes.plugins.registry import PluginRegistry, PluginState
    from hermes.plugins.run_providers import PluginProviders
    from hermes.plugins.session_engines import AdaptEngine, PluginEngines
    from hermes.plugins.surface import Surface
    from hermes.tools.toolbox import SessionTools

# States that the user must do something about.
FAULTY = ("error", "changed", "needs configuration")
BUILT_IN_ENGINE = "compressor"
BUILT_IN_MEMORY = ("", "local", "honcho")


class HostServices(NamedTuple):
    """What plugins may use of a run: tools, and a model paid by the session."""

    run: RunContext
    models: Models
    tools: SessionTools
    find_session: Callable[[str], Session | None]


class RunPlugins:
    """Connects the plugins of a run with its sessions. It loads nothing if no plugin is enabled.
    `hooks` and `images` return the registries that plugins add to; `adapt_engine` wraps a plugin's
    context engine. `memory_providers` are those of plugins."""

    def __init__(
        self,
        host: HostServices,
        *,
        hooks: Callable[[], Hooks],
        images: Callable[[], ImageProviders],
        adapt_engine: AdaptEngine,
    ) -> None:
        self._hooks = hooks
        self._images = images
        self._adapt_engine = adapt_engine
        self._host = host
        self._run = host.run
        self.memory_providers: dict[str, Callable[[], MemoryProvider]] = {}
        self._plugins: PluginRegistry | None = None
        self._offering = asyncio.Lock()
        self._offered = False

    @property
    def plugins(self) -> PluginRegistry:
        if self._plugins is None:
            from hermes.plugins.host import create_registry

            self._plugins = create_registry(self._host)
        return self._plugins

    @cached_property
    def services(self) -> PluginProviders:
        """Web and speech providers of plugins."""
        from hermes.plugins.run_providers import PluginProviders

        return PluginProviders(self._run.settings, self._host.tools)

    @cached_property
    def engines(self) -> PluginEngines:
        """Context engines of plugins."""
        from hermes.plugins.session_engines import PluginEngines

        return PluginEngines(self._run.settings, self._adapt_engine)

    @property
    def enabled(self) -> bool:
        own = self._run.settings.plugins
        return bool(own.enabled) and not own.safe_mode

    async def offer(self) -> None:
        """Offer the plugins' registrations to sessions. Known plugins use cached registrations;
        only new ones are started."""
        if not self.enabled:
            return
        async with self._offering:
            if self._offered:
                await self._follow()
                return
            self._offered = True
            # The files of all enabled plugins are read.
            plugins = await asyncio.to_thread(lambda: self.plugins)
            own = [each for each in plugins.usable() if self._is_due(each)]
            await plugins.load(own, start=not self._run.offline)
            self._join([each.plugin.key for each in own])
            self._run.notices += self._faults()

    def _is_due(self, state: PluginState) -> bool:
        """Return whether the plugin must be loaded now. Memory and context backends load only if
        configured; image, web and speech backends decide which tools a session gets."""
        settings = self._run.settings
        match state.plugin.category:
            case "memory":
                return settings.memory.provider not in BUILT_IN_MEMORY
            case "context_engine":
                return settings.context.engine != BUILT_IN_ENGINE
            case "image_gen" | "web" | "tts" | "stt":
                return not state.plugin.trusted
            case category:
                return not category

    async def _follow(self) -> None:
        """Reload changed plugins that are under development."""
        plugins = self.plugins
        for state in plugins.states:
            await plugins.ready(state.plugin.key)
        if plugins.reloaded:
            self._join(sorted(plugins.reloaded))
            plugins.reloaded.clear()

    def surfaces(self) -> Iterator[tuple[str, Surface]]:
        """Yield the registrations of loaded plugins by key."""
        for state in self.plugins.states:
            if state.status == "loaded":
                yield state.plugin.key, state.surface

    async def run_slash_command(self, name: str, argument: str, session_id: str) -> str | None:
        """Return the output of a plugin's slash command; None when no plugin has it."""
        if not self.enabled:
            return None
        await self.offer()
        for key, surface in self.surfaces():
            if any(each.name == name for each in surface.commands):
                result = await self._call(key, "command", name, argument, session_id)
                return "" if result is None else str(result)
        return None

    async def list_slash_commands(self) -> dict[str, str]:
        """Return the descriptions of slash commands by name."""
        if not self.enabled:
            return {}
        await self.offer()
        return {
            offer.name: f"{offer.args_hint} {offer.description}".strip()
            for _, surface in self.surfaces()
            for offer in surface.commands
        }

    def has_cli_command(self, name: str) -> bool:
        """Return whether a plugin has this command. Only the manifests are checked."""
        return self.enabled and any(
            each.plugin.manifest and name in each.plugin.manifest.provides_commands
            for each in self.plugins.usable()
        )

    async def run_cli_command(self, name: str, args: list[str]) -> tuple[int, str]:
        """Run `hermes NAME ARGS…` of a plugin; return its exit code and output."""
        await self.offer()
        for key, surface in self.surfaces():
            if any(each.name == name for each in surface.cli):
                result = await self._call(key, "cli", name, args, "")
                return int(result["code"]), str(result["output"])
        raise UsageError(
            f"No plugin has the command {name}; `hermes plugins list` shows all plugins."
        )

    async def _call(
        self, key: str, kind: CallKind, name: str, payload: Any, session_id: str
    ) -> Any:
        from hermes.plugins.protocol import NO_CALLER, PluginCaller

        running = await self.plugins.ready(key)
        seconds = self.plugins.rules.tool_timeout
        caller = PluginCaller(session_id) if session_id else NO_CALLER
        return await running.call(kind, name, payload, seconds=seconds, caller=caller)

    async def on_session_closed(self, session_id: str) -> None:
        if "engines" in self.__dict__:
            await self.engines.on_session_closed(session_id)

    async def close(self) -> None:
        if self._plugins is not None:
            await self._plugins.close()

    def _join(self, keys: list[str]) -> None:
        from hermes.plugins.integration import sync_skills
        from hermes.tools.catalogue import CatalogueEntry

        plugins = self.plugins
        for key in keys:
            state = plugins.state(key)
            if state.status == "loaded":
                try:
                    self._join_one(state)
                except Exception as error:
                    plugins.fail(key, str(error))
        self._host.tools.add(CatalogueEntry(tool.spec, tool) for tool in plugins.tools())
        if "services" in self.__dict__:
            self.services.offer_tools()
        loaded = [state for state in plugins.states if state.status == "loaded"]
        self._run.notices += sync_skills(loaded, plugin_skills_folder(self._run.home))

    def _join_one(self, state: PluginState) -> None:
        from hermes.plugins.integration import Service, engines_of, join_hooks, join_images

        surface = state.surface
        if surface.hooks:
            join_hooks(self.plugins, state, self._hooks())
        if surface.images:
            join_images(self.plugins, state, self._images().register_provider)
        if surface.engines:
            for factory in engines_of(self.plugins, state).values():
                self.engines.add(factory)
        for offer in surface.services:
            service = Service(self.plugins, state, offer)
            if offer.kind == "memory":
                from hermes.plugins.memory_provider import PluginMemory

                self.memory_providers[service.name] = partial(
                    PluginMemory, service, profile=self._run.home.profile
                )
            else:
                self.services.add(service)

    def _faults(self) -> list[str]:
        if self._run.settings.plugins.debug:
            return [
                f"Plugin {state.plugin.key} in {state.plugin.path}: {state.status} {state.fault}"
                for state in self.plugins.states
            ]
        return [
            f"Plugin {state.plugin.key}: {state.fault}"
            for state in self.plugins.states
            if state.status in FAULTY and not state.plugin.trusted
        ]
