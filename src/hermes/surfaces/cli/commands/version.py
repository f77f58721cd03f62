"""`hermes version`: the line of `--version`, and installation details with `--json`."""

from __future__ import annotations

import platform

import click

from hermes.homes.updating import installation
from hermes.surfaces.cli.output import Output, json_output
from hermes.surfaces.cli.place import home_of
from hermes.version import __version__


@click.command(help="Print the version; `hermes update --check` looks for a newer one.")
@json_output()
def version_command(ctx: click.Context) -> Output:
    here, python = installation(), platform.python_version()
    data = {
        "version": __version__,
        "python": python,
        "home": str(home_of(ctx).root),
        "installed": here.kind,
        "place": str(here.place),
    }
    return Output(data, f"hermes {__version__} (Python {python})")
