"""The personalities of a home: those that come along and those of its settings."""

from __future__ import annotations

from hermes.config.settings import Settings
from hermes.context.system import all_personalities, find_personality
from hermes.core.commands import Overlay


def names(settings: Settings) -> list[str]:
    return sorted(all_personalities(_own(settings)))


def overlay(settings: Settings, name: str) -> Overlay:
    """What lets a session speak that way; NotFound. "none" takes away what is there."""
    found, text = find_personality(name, _own(settings))
    return Overlay(name=found, text=text)


def _own(settings: Settings) -> dict[str, object]:
    return settings.agent.personalities | settings.personalities
