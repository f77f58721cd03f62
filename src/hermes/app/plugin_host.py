"""What plugins of a run may add to, joined to them: hooks, pictures, context engines, and providers
of memory, web and speech."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hermes.app.context_engine import plugged
from hermes.context.engine import BUILT_IN
from hermes.plugins.run_plugins import Plugged, PluginHost

if TYPE_CHECKING:
    from hermes.app.build import App
    from hermes.core.parts import Connect
    from hermes.plugins.joining import ImagePlace


def joined(app: App) -> Plugged:
    """The plugins of this run; no place that they add to is made before it is used."""

    def images() -> tuple[ImagePlace, type]:
        from hermes.images.provider import ImageGenProvider

        return app.imaging.providers, ImageGenProvider

    host = PluginHost(app.run, app.models, app.tools, app.opened, app.hooked.hooks_of)
    return Plugged(
        host,
        context_engines=app.engines,
        memory_providers=app.memory_providers,
        hooks=lambda: app.hooked.registry,
        images=images,
        fit=partial(plugged, app),
    )


def selecting(app: App, session_id: str, connect: Connect) -> Connect:
    """The way to models, past a context engine of a plugin; where the settings name none, nothing
    of theirs is loaded."""
    if not app.plugged.wanted or app.settings.context.engine == BUILT_IN:
        return connect
    return app.plugged.engines.around(session_id, connect)
