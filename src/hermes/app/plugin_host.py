"""What plugins of a run may add to, joined to them: hooks, pictures, context engines, and providers
of memory, web and speech."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hermes.app.context_engine import plugin_context_engine
from hermes.context.engine import BUILT_IN
from hermes.plugins.run_plugins import HostServices, RunPlugins

if TYPE_CHECKING:
    from hermes.app.build import App
    from hermes.core.turn import Connect
    from hermes.plugins.integration import ImageRegistrar


def join_plugins(app: App) -> RunPlugins:
    """The plugins of this run; no place that they add to is made before it is used."""

    def images() -> tuple[ImageRegistrar, type]:
        from hermes.images.provider import ImageGenProvider

        return app.images.providers, ImageGenProvider

    host = HostServices(app.run, app.models, app.tools, app.find_session, app.hooks.hooks_of)
    return RunPlugins(
        host,
        context_engines=app.context_engines,
        memory_providers=app.memory_providers,
        hooks=lambda: app.hooks.registry,
        images=images,
        fit=partial(plugin_context_engine, app),
    )


def select_context(app: App, session_id: str, connect: Connect) -> Connect:
    """The way to models, past a context engine of a plugin; where the settings name none, nothing
    of theirs is loaded."""
    if not app.plugins.enabled or app.settings.context.engine == BUILT_IN:
        return connect
    return app.plugins.engines.wrap(session_id, connect)
