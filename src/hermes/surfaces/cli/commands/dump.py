"""`hermes dump`: what somebody who helps needs to know."""

from __future__ import annotations

import click

from hermes.app.build import App
from hermes.homes.status import Page, StatusSources, dump
from hermes.surfaces.cli.output import as_json_option, with_app
from hermes.surfaces.cli.pages import print_page


@click.command(help="A summary to paste where you ask for help: no keys, nothing that was said.")
@click.option("--show-keys", is_flag=True, help="With the first and last letters of keys.")
@as_json_option
@click.pass_context
def command(ctx: click.Context, show_keys: bool, as_json: bool) -> None:
    async def work(app: App) -> Page:
        sources = StatusSources(app.run, app.models, app.memory, app.library)
        return await dump(sources, with_keys=show_keys)

    print_page(with_app(ctx, work), as_json=as_json)
