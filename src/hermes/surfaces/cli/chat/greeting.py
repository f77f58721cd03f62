"""The first line of a chat, shown before anything is loaded."""

from __future__ import annotations

from hermes.commands.paths import short_path
from hermes.surfaces.cli.chat.cells import cut
from hermes.surfaces.cli.chat.paint import Paint
from hermes.version import __version__

COMPACT_WIDTH = 80


def greeting(cwd: str, paint: Paint, width: int) -> str:
    name = f"⚕ Hermes {__version__}"
    place = cut(f" · {short_path(cwd)}", width - len(name) - 1) if width >= COMPACT_WIDTH else ""
    return paint(name, "bold") + paint(place, "dim")
