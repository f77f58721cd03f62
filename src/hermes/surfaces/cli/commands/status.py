"""`hermes status`: the state of this home on one page."""

from __future__ import annotations

import click

from hermes.app.build import App
from hermes.homes.status import Page, StatusSources, status
from hermes.surfaces.cli.output import as_json_option, with_app
from hermes.surfaces.cli.pages import print_page


@click.command(help="What answers, which keys there are, what may be done: one page, keys masked.")
@click.option("--all", "whole", is_flag=True, help="Also what is set up but not in use.")
@click.option("--deep", is_flag=True, help="Also try it: ask the provider, read every record.")
@as_json_option
@click.pass_context
def command(ctx: click.Context, whole: bool, deep: bool, as_json: bool) -> None:
    async def work(app: App) -> Page:
        sources = StatusSources(app.run, app.models, app.memory, app.library)
        page = await status(sources)
        if not (whole or deep):
            return page
        # The short page is what people look at every day.
        from hermes.homes.status_checks import everything, tried

        more = await everything(sources, await _plugin_states(app)) if whole else {}
        return {**page, **more, **(await tried(sources) if deep else {})}

    print_page(with_app(ctx, work), as_json=as_json)


async def _plugin_states(app: App) -> dict[str, str]:
    from hermes.plugins.admin import Desk

    await app.plugged.offer()
    return {row.key: row.fault or row.state for row in Desk(app.run, app.plugged.plugins).rows()}
