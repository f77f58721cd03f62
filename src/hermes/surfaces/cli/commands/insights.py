"""`hermes insights`: recent activity in numbers and bars."""

from __future__ import annotations

import click

from hermes.app.build import App
from hermes.codec.json import plain
from hermes.commands.insights import DAYS, insight_lines
from hermes.surfaces.cli.output import Output, json_output, with_app
from hermes.surfaces.cli.style import apply_style


@click.command(
    help="Sessions, tokens, cost, tools, skills, memory and hours of the last days. All data comes "
    "from this home; no model is called. Unknown prices are shown as n/a."
)
@click.option("--days", type=click.IntRange(1, 3650), default=DAYS, show_default=True)
@click.option("--source", default="", help="Only sessions from this source: cli, api, acp …")
@json_output(with_app)
async def insights_command(app: App, days: int, source: str) -> Output:
    from hermes.homes.insights import insights

    found = await insights(
        app.run, app.journal, app.archive, app.skills(), app.memory, days=days, source=source
    )
    return Output(plain(found), insight_lines(found, paint=apply_style))
