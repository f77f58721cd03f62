"""`/plugins`, and the slash commands of plugins, which take precedence over skills."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.commands.registry import Extra, Here, Outcome, Shown, SlashCommand, Suggestion
from hermes.commands.visible import clean, one_line
from hermes.plugins.plugin_commands import command_of_plugin, commands_of_plugins

NONE = "No plugins are installed; create one with `hermes plugins new NAME`."


async def _list(here: Here, _argument: str) -> Outcome:
    await here.app.plugged.offer()
    lines = [
        one_line(
            f"{state.found.key:<24} {state.status:<12} {state.protection} {state.fault}".rstrip(),
            200,
        )
        for state in here.app.plugged.plugins.states
    ]
    return Shown(text="\n".join(lines) or NONE)


class PluginCommands:
    """`then` handles commands that no plugin has."""

    def __init__(self, then: Extra) -> None:
        self._then = then

    async def run(self, here: Here, line: str) -> Outcome | None:
        name, _, argument = line.removeprefix("/").partition(" ")
        plain = name.lower().replace("_", "-")
        said = await command_of_plugin(here.app.plugged, plain, argument.strip(), here.session.id)
        if said is None:
            return await self._then.run(here, line)
        return Shown(text=here.app.secrecy.text(clean(said)))

    async def names(self, here: Here) -> Sequence[Suggestion]:
        own = [
            Suggestion(text=name, words=one_line(words, 60))
            for name, words in (await commands_of_plugins(here.app.plugged)).items()
        ]
        return (*own, *await self._then.names(here))


PLUGIN_COMMANDS = (
    SlashCommand(
        "plugins", "List plugins and their state.", _list,
        category="tools",
    ),
)  # fmt: skip
