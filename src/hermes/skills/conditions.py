"""Where a skill shows: by system, by what is switched off, by what tools there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hermes.codec.values import Value
from hermes.skills.scan import Entry
from hermes.skills.skill import Conditions


class Here(Value):
    """A session as skills see it: the surface, the system, what is offered and switched off."""

    platform: str = "cli"
    system: str = "linux"
    tools: tuple[str, ...] = ()
    toolsets: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


def disabled_names(
    everywhere: Sequence[str], by_platform: Mapping[str, Sequence[str]], platform: str
) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*everywhere, *by_platform.get(platform, ()))))


def listed(entry: Entry, here: Here) -> bool:
    """It can be used here at all."""
    return entry.name not in here.disabled and entry.skill.runs_on(here.system)


def indexed(entry: Entry, here: Here) -> bool:
    """It is worth a line in the prompt."""
    return listed(entry, here) and _met(entry.skill.conditions, here)


def _met(conditions: Conditions, here: Here) -> bool:
    return (
        set(conditions.requires_tools) <= set(here.tools)
        and set(conditions.requires_toolsets) <= set(here.toolsets)
        and not set(conditions.fallback_for_tools) & set(here.tools)
        and not set(conditions.fallback_for_toolsets) & set(here.toolsets)
    )
