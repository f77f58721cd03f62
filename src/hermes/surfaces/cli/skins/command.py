"""`/skin`: list skins or change the skin of the running chat."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.codec.values import replace
from hermes.commands.registry import CommandContext, SlashCommand, Suggestion
from hermes.surfaces.cli.skins.skin import find_skin, skin_names


async def skin(here: CommandContext, argument: str) -> str:
    tuned, home = here.app.controls[here.session.id], here.app.run.home.root
    if not argument:
        names = skin_names(home)
        lines = [
            f"{'●' if name == tuned.display.skin else ' '} {name:<16} {words}"
            for name, words in names.items()
        ]
        return "\n".join((*lines, "/skin NAME applies one."))
    found = find_skin(argument, home)
    tuned.display = replace(tuned.display, skin=argument)
    words = f" {found.description}" if found.description else ""
    keeps = f"`hermes config set display.skin {argument}` makes it permanent."
    return f"{argument}:{words} {keeps}"


async def complete_skins(here: CommandContext, begun: str) -> Sequence[Suggestion]:
    names = skin_names(here.app.run.home.root)
    return [
        Suggestion(text=name, words=words, replaces=len(begun))
        for name, words in names.items()
        if name.startswith(begun)
    ]


COMMANDS = (
    SlashCommand(
        "skin [name]", "List skins, or apply one.", skin, surfaces=("cli",), complete=complete_skins
    ),
)
