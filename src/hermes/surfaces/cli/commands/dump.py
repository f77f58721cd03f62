"""`hermes dump`: what somebody who helps needs to know."""

from __future__ import annotations

from functools import partial

import click

from hermes.homes.status import dump
from hermes.surfaces.cli.output import as_json_option, with_app
from hermes.surfaces.cli.pages import print_page


@click.command(help="A summary to paste where you ask for help: no keys, nothing that was said.")
@click.option("--show-keys", is_flag=True, help="With the first and last letters of keys.")
@as_json_option
@click.pass_context
def command(ctx: click.Context, show_keys: bool, as_json: bool) -> None:
    print_page(with_app(ctx, partial(dump, with_keys=show_keys)), as_json=as_json)
