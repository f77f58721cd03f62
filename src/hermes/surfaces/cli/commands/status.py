"""`hermes status`: the state of this home on one page."""

from __future__ import annotations

import click

from hermes.app.build import App
from hermes.app.homes.status import Page, status
from hermes.surfaces.cli.output import as_json_option, with_app
from hermes.surfaces.cli.pages import print_page


@click.command(help="What answers, which keys there are, what may be done: one page, keys masked.")
@click.option("--all", "whole", is_flag=True, help="Also what is set up but not in use.")
@click.option("--deep", is_flag=True, help="Also try it: ask the provider, read every record.")
@as_json_option
@click.pass_context
def command(ctx: click.Context, whole: bool, deep: bool, as_json: bool) -> None:
    async def work(app: App) -> Page:
        page = await status(app)
        if not (whole or deep):
            return page
        # The short page is what people look at every day.
        from hermes.app.homes.depth import everything, tried

        more = await everything(app) if whole else {}
        return {**page, **more, **(await tried(app) if deep else {})}

    print_page(with_app(ctx, work), as_json=as_json)
