"""Decides which skills a session can use and which the prompt lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hermes.codec.values import Value
from hermes.skills.scan import SkillEntry
from hermes.skills.skill import SkillConditions


class SkillEnvironment(Value):
    """What decides whether a skill applies to a session: surface, system, tools, disabled
    skills."""

    platform: str = "cli"
    system: str = "linux"
    tools: tuple[str, ...] = ()
    toolsets: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


def disabled_names(
    everywhere: Sequence[str], by_platform: Mapping[str, Sequence[str]], platform: str
) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*everywhere, *by_platform.get(platform, ()))))


def is_available(entry: SkillEntry, here: SkillEnvironment) -> bool:
    """Returns whether the skill can be used in this session."""
    return entry.name not in here.disabled and entry.skill.runs_on(here.system)


def is_indexed(entry: SkillEntry, here: SkillEnvironment) -> bool:
    """Returns whether the prompt lists the skill."""
    return is_available(entry, here) and _conditions_hold(entry.skill.conditions, here)


def _conditions_hold(conditions: SkillConditions, here: SkillEnvironment) -> bool:
    return (
        set(conditions.requires_tools) <= set(here.tools)
        and set(conditions.requires_toolsets) <= set(here.toolsets)
        and not set(conditions.fallback_for_tools) & set(here.tools)
        and not set(conditions.fallback_for_toolsets) & set(here.toolsets)
    )
