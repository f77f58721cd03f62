"""`hermes version`: the line of `--version`, and for scripts what belongs to it."""

from __future__ import annotations

import platform

import click

from hermes.homes.updating import installation
from hermes.surfaces.cli.output import as_json_option, print_json
from hermes.surfaces.cli.place import home_of
from hermes.version import __version__


@click.command(help="Which version this is; `hermes update --check` looks for a newer one.")
@as_json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    if not as_json:
        print(f"hermes {__version__} (Python {platform.python_version()})")
        return
    here = installation()
    print_json(
        {
            "version": __version__,
            "python": platform.python_version(),
            "home": str(home_of(ctx).root),
            "installed": here.kind,
            "place": str(here.place),
        }
    )
