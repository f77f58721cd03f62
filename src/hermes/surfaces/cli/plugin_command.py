"""Commands that plugins add: declared in their manifests, run by the plugin."""

from __future__ import annotations

import sys

import click

from hermes.app.app import App
from hermes.commands.formatting import sanitize
from hermes.config.environment import process_environment
from hermes.config.home import resolve_home
from hermes.config.layers import flag_values
from hermes.config.load import load
from hermes.core.world import World
from hermes.surfaces.cli.command_context import with_app


def plugin_command(ctx: click.Context, name: str) -> click.Command | None:
    """None when no enabled plugin declares it. No plugin code runs for this."""
    options, env = ctx.find_root().params, process_environment()
    use_file = not options.get("ignore_config")
    home = resolve_home(env, profile=options.get("profile"))
    config = load(home, flags=flag_values(options), env=env, use_file=use_file)
    if not config.settings.plugins.enabled:
        return None
    # This opens nothing, so there is nothing to close.
    if not App(config, env=env, world=World()).plugins.has_cli_command(name):
        return None

    @click.pass_context
    def run(inner: click.Context, /, words: tuple[str, ...]) -> int:
        code, output = with_app(inner, lambda own: own.plugins.run_cli_command(name, list(words)))
        sys.stdout.write(sanitize(output))
        return code

    return click.Command(
        name,
        callback=run,
        params=[click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
        help="A command of a plugin.",
    )
