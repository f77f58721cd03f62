"""Which groups of tools new sessions get, shown and changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.codec.values import Value
from hermes.config.edit import write_settings
from hermes.config.settings import Settings
from hermes.core.errors import NotFound
from hermes.tools.toolsets import TOOLSETS

if TYPE_CHECKING:
    from hermes.app.build import App


class ToolsetRow(Value):
    """`members` are its tools, or the toolsets that it is made of."""

    name: str
    on: bool
    members: tuple[str, ...]


def toolset_rows(settings: Settings) -> tuple[ToolsetRow, ...]:
    on = set(settings.toolsets)
    for name in settings.toolsets:
        on |= set(TOOLSETS[name].includes) if name in TOOLSETS else set()
    on -= set(settings.agent.disabled_toolsets)
    return tuple(
        ToolsetRow(name=name, on=name in on, members=each.tools or each.includes)
        for name, each in TOOLSETS.items()
    )


def switch_toolset(app: App, name: str, *, on: bool) -> None:
    """In the settings, for chats that start from now on; NotFound."""
    if name not in TOOLSETS:
        raise NotFound(f"There is no toolset {name!r}; there are {', '.join(TOOLSETS)}.")
    enabled = list(app.settings.toolsets)
    disabled = [each for each in app.settings.agent.disabled_toolsets if each != name]
    is_included = any(row.name == name and row.on for row in toolset_rows(app.settings))
    if on and name not in enabled and not is_included:
        enabled.append(name)
    if not on:
        disabled.append(name)
    write_settings(app.home, {("toolsets",): enabled, ("agent", "disabled_toolsets"): disabled})
