"""The tools of one session, chosen by the settings when it opens and kept for its life."""

from __future__ import annotations

from hermes.config.settings import Settings
from hermes.tools.catalogue import Catalogue, ChosenTools, built_in_entries
from hermes.tools.toolsets import resolve_toolsets


def chosen_tools(names: tuple[str, ...]) -> ChosenTools:
    return Catalogue(built_in_entries()).choose(names)


def wanted_names(settings: Settings, *, reduced: bool = False) -> tuple[str, ...]:
    """A model that is too small for tools gets none."""
    if reduced:
        return ()
    return resolve_toolsets(settings.toolsets, settings.agent.disabled_toolsets)
