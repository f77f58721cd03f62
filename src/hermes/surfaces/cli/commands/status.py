"""`hermes status`: the state of this home on one page."""

from __future__ import annotations

import click

from hermes.app.build import App
from hermes.homes.status import status
from hermes.surfaces.cli.output import Output, json_output, page_lines, with_app


@click.command(help="Show the model, keys (masked), permissions and settings on one page.")
@click.option("--all", "whole", is_flag=True, help="Include what is set up but not in use.")
@click.option("--deep", is_flag=True, help="Also test it: ask the provider, read every record.")
@json_output(with_app)
async def status_command(app: App, whole: bool, deep: bool) -> Output:
    page = await status(app)
    if whole or deep:
        # Only these two options need the slower checks.
        from hermes.homes.status_checks import deep_checks, full_status

        more = await full_status(app, await _plugin_states(app)) if whole else {}
        page = {**page, **more, **(await deep_checks(app) if deep else {})}
    return Output(page, page_lines(page))


async def _plugin_states(app: App) -> dict[str, str]:
    from hermes.plugins.admin import PluginAdmin

    await app.plugins.offer()
    return {
        row.key: row.fault or row.state for row in PluginAdmin(app.run, app.plugins.plugins).rows()
    }
