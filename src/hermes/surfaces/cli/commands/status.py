"""`hermes status`: the state of this home on one page."""

from __future__ import annotations

import click

from hermes.app.status import status
from hermes.surfaces.cli.output import as_json_option, with_app
from hermes.surfaces.cli.pages import print_page


@click.command(help="What answers, which keys there are, what may be done: one page, keys masked.")
@as_json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    print_page(with_app(ctx, status), as_json=as_json)
