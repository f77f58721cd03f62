"""`hermes dump`: a summary for support requests."""

from __future__ import annotations

import click

from hermes.app.build import App
from hermes.homes.status import dump
from hermes.surfaces.cli.output import Output, json_output, page_lines, with_app


@click.command(help="Print a summary for support requests: no keys, no conversation text.")
@click.option("--show-keys", is_flag=True, help="Include the first and last letters of keys.")
@json_output(with_app)
async def dump_command(app: App, show_keys: bool) -> Output:
    page = await dump(app, with_keys=show_keys)
    return Output(page, page_lines(page))
