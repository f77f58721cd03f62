"""The plugins of one run: offers their tools, hooks, commands, skills and providers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.errors import HermesError
from hermes.skills.session_index import plugin_skills_folder

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.core.events import SessionOpened
    from hermes.core.session import Session
    from hermes.core.turn import ContextEngine
    from hermes.hooks.session import SessionHooks
    from hermes.memory.provider import MemoryProvider
    from hermes.models.models import Models
    from hermes.plugins.integration import HookRegistrar, ImageRegistrar, Service
    from hermes.plugins.registry import PluginRegistry, PluginState
    from hermes.plugins.run_providers import PluginProviders
    from hermes.plugins.session_engines import AdaptEngine, PluginEngines
    from hermes.plugins.surface import PlatformOffer, Surface
    from hermes.tools.toolbox import SessionTools

BUILT_IN_ENGINE = "compressor"
BUILT_IN_MEMORY = ("", "local", "honcho")


EngineMaker = Callable[["str", "SessionOpened"], "ContextEngine"]


class HostServices(NamedTuple):
    """What plugins may use of a run: tools, hooks, and a model paid by the session."""

    run: RunContext
    models: Models
    tools: SessionTools
    find_session: Callable[[str], Session | None]
    find_hooks: Callable[[str], SessionHooks | None]


class RunPlugins:
    """Loads nothing if no plugin is enabled. `hooks` and `images` return the registries that
    plugins add to, the latter with the base class of image providers; `adapt_engine` wraps a
    plugin's context engine. `context_engines` and `memory_providers` are those of plugins."""

    def __init__(
        self,
        host: HostServices,
        *,
        hooks: Callable[[], HookRegistrar] | None = None,
        images: Callable[[], tuple[ImageRegistrar, type]] | None = None,
        adapt_engine: AdaptEngine | None = None,
    ) -> None:
        self.hooks = hooks
        self.images = images
        self.adapt_engine = adapt_engine
        self._host = host
        self._run = host.run
        self.context_engines: dict[str, EngineMaker] = {}
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

        assert self.adapt_engine is not None
        return PluginEngines(self._run.settings, self.adapt_engine)

    async def _load(self) -> PluginRegistry:
        """Reads the files of all enabled plugins."""
        return await asyncio.to_thread(lambda: self.plugins)

    @property
    def enabled(self) -> bool:
        own = self._run.settings.plugins
        return bool(own.enabled) and not own.safe_mode

    async def offer(self) -> None:
        """Offers the plugins' registrations to sessions. Known plugins use cached registrations;
        only new ones are started."""
        if not self.enabled:
            return
        async with self._offering:
            if self._offered:
                await self._follow()
                return
            self._offered = True
            plugins = await self._load()
            own = [each for each in plugins.usable() if self._is_due(each)]
            await plugins.load(own, start=not self._run.offline)
            self._join([each.found.key for each in own])
            self._run.notices += self._faults()

    def _is_due(self, state: PluginState) -> bool:
        """Returns whether the plugin must be loaded now. Memory and context backends load only if
        configured; image, web and speech backends decide which tools a session gets."""
        settings = self._run.settings
        match state.found.category:
            case "image_gen":
                return self.images is not None and not state.found.trusted
            case "memory":
                return settings.memory.provider not in BUILT_IN_MEMORY
            case "context_engine":
                return settings.context.engine != BUILT_IN_ENGINE
            case "web" | "tts" | "stt":
                return not state.found.trusted
            case category:
                return not category

    async def _follow(self) -> None:
        """Reloads changed plugins that are under development."""
        plugins = self.plugins
        for state in plugins.states:
            await plugins.ready(state.found.key)
        if plugins.reloaded:
            self._join(sorted(plugins.reloaded))
            plugins.reloaded.clear()

    def surfaces(self) -> Iterator[tuple[str, Surface]]:
        """Yields the registrations of loaded plugins by key."""
        for state in self.plugins.states:
            if state.status == "loaded" and state.surface:
                yield state.found.key, state.surface

    def platforms(self) -> Iterator[tuple[str, PlatformOffer]]:
        """Yields the chat platforms of loaded plugins by plugin key, for a gateway."""
        return ((key, each) for key, surface in self.surfaces() for each in surface.platforms)

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
                self._join_or_fail(state, self._join_one)
        self._host.tools.add(CatalogueEntry(tool.spec, tool) for tool in plugins.tools())
        if "services" in self.__dict__:
            self.services.offer_tools()
        loaded = [state for state in plugins.states if state.status == "loaded"]
        self._run.notices += sync_skills(loaded, plugin_skills_folder(self._run.home))

    def _join_one(self, state: PluginState) -> None:
        from hermes.plugins.integration import join_engines, join_hooks, join_images

        if state.surface and state.surface.hooks:
            if self.hooks is None:
                raise HermesError("Hooks are not supported here.")
            join_hooks(self.plugins, state, self.hooks())
        if state.surface and state.surface.images:
            if self.images is None:
                raise HermesError("Image providers are not supported here.")
            join_images(self.plugins, state, *self.images())
        if state.surface and state.surface.engines:
            join_engines(self.plugins, state, self.context_engines, self.engines.factory_for)
        self._join_services(state)

    def _join_services(self, state: PluginState) -> None:
        from hermes.plugins.integration import Service

        for offer in state.surface.services if state.surface else ():
            service = Service(self.plugins, state, offer)
            if offer.kind == "memory":
                self._join_memory(service)
            else:
                self.services.add(service)

    def _join_memory(self, service: Service) -> None:
        def make() -> MemoryProvider:
            from hermes.plugins.memory_provider import PluginMemory

            return PluginMemory(service, profile=self._run.home.profile)

        self.memory_providers[service.name] = make

    def _join_or_fail(self, state: PluginState, work: Callable[[PluginState], None]) -> None:
        """Marks the plugin as failed if any registration fails."""
        try:
            work(state)
        except Exception as error:
            self.plugins.fail(state.found.key, str(error))

    def _faults(self) -> list[str]:
        bad = ("error", "changed", "needs configuration")
        if self._run.settings.plugins.debug:
            return [
                f"Plugin {state.found.key} in {state.found.place}: {state.status} {state.fault}"
                for state in self.plugins.states
            ]
        return [
            f"Plugin {state.found.key}: {state.fault}"
            for state in self.plugins.states
            if state.status in bad and not state.found.trusted
        ]
