"""`hermes backup`: a home in one file."""

from __future__ import annotations

import time
from pathlib import Path

import click

from hermes.app.backup import back_up, snapshot
from hermes.core.errors import UsageError
from hermes.surfaces.cli.output import as_json_option, columns, print_json
from hermes.surfaces.cli.place import home_of
from hermes.surfaces.cli.style import mark


@click.command(help="Put this home into one zip file; `hermes import FILE` takes it out again.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file to write.")
@click.option("-q", "--quick", is_flag=True, help="Only settings, keys and sessions.")
@click.option("-l", "--label", default="", help="A word for the name of the file.")
@as_json_option
@click.pass_context
def command(
    ctx: click.Context, output: Path | None, quick: bool, label: str, as_json: bool
) -> None:
    if quick and output is not None:
        raise UsageError("A quick backup stays in the home; leave out --output or --quick.")
    home, now = home_of(ctx), time.time()
    made = snapshot(home, now, label=label) if quick else back_up(home, now, to=output, label=label)
    if as_json:
        print_json(columns(made))
        return
    size = f"{made.bytes / 1e6:.1f} MB" if made.bytes >= 1e5 else f"{made.bytes:,} bytes"
    print(f"{mark('ok')} {made.files} files ({size}) are in {made.file}.")
    print("It holds your keys and all that was said: keep it where only you can read it.")
