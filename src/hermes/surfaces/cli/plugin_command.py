"""Commands of `hermes` that plugins bring: known by their manifests, run by the plugin."""

from __future__ import annotations

import sys

import click

from hermes.app.build import App
from hermes.app.plugin_commands import cli_command, has_cli_command
from hermes.app.start import start
from hermes.commands.visible import clean
from hermes.surfaces.cli.output import with_app


def plugin_command(ctx: click.Context, name: str) -> click.Command | None:
    """None when no plugin that is on declares it; nothing of a plugin runs to find out."""
    app = start(ctx.find_root().params)
    if not app.plugged.wanted or not has_cli_command(app, name):
        return None

    @click.pass_context
    def run(inner: click.Context, /, words: tuple[str, ...]) -> int:
        async def work(own: App) -> tuple[int, str]:
            return await cli_command(own, name, list(words))

        code, output = with_app(inner, work)
        sys.stdout.write(clean(output))
        return code

    return click.Command(
        name,
        callback=run,
        params=[click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
        help="A command of a plugin.",
    )
