"""What plugins of a run may add to, joined to them: hooks, pictures, context engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.app.compacting import EngineMaker, plugged
from hermes.app.plugged import Plugged

if TYPE_CHECKING:
    from hermes.app.build import App
    from hermes.plugins.joining import ImagePlace


def joined(app: App) -> Plugged:
    """The plugins of this run; no place that they add to is made before it is used."""

    def images() -> tuple[ImagePlace, type]:
        from hermes.images.provider import ImageGenProvider

        return app.imaging.providers, ImageGenProvider

    def engine(found: Any) -> EngineMaker:
        return lambda app, session_id, opened: plugged(app, session_id, opened, found)

    return Plugged(app, hooks=lambda: app.hooked.registry, images=images, engine=engine)
