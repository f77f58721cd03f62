"""The tools of one session, chosen by the settings when it opens and kept for its life."""

from __future__ import annotations

from hermes.config.settings import Settings
from hermes.tools.catalogue import Catalogue, ChosenTools, built_in_entries
from hermes.tools.toolsets import resolve_toolsets

# What models the user brings tools of its own.
PROVIDER_TOOLSETS: dict[str, tuple[str, ...]] = {
    "": (),
    "local": ("user_model",),
    "honcho": ("honcho",),
}


class Tools:
    """The catalogue of one run: read once, and sessions with the same tools share them."""

    def __init__(self) -> None:
        self._catalogue: Catalogue | None = None
        self._chosen: dict[tuple[str, ...], ChosenTools] = {}

    def choose(self, names: tuple[str, ...]) -> ChosenTools:
        if self._catalogue is None:
            self._catalogue = Catalogue(built_in_entries())
        if names not in self._chosen:
            self._chosen[names] = self._catalogue.choose(names)
        return self._chosen[names]


def wanted_names(settings: Settings, *, reduced: bool = False) -> tuple[str, ...]:
    """A model that is too small for tools gets none."""
    if reduced:
        return ()
    enabled = (*settings.toolsets, *PROVIDER_TOOLSETS[settings.memory.provider])
    return resolve_toolsets(enabled, settings.agent.disabled_toolsets)
