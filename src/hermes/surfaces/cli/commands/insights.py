"""`hermes insights`: what was done lately, in numbers and bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hermes.app.build import App
from hermes.codec.json import plain
from hermes.commands.insights import DAYS, insight_lines
from hermes.surfaces.cli.output import as_json_option, print_json, with_app
from hermes.surfaces.cli.style import styled

if TYPE_CHECKING:
    from hermes.homes.insights import Insights


@click.command(
    help="Sessions, tokens, cost, tools, skills, memory and hours of the last days. Everything "
    "comes from this home; no model is asked. Unknown prices are shown as n/a."
)
@click.option("--days", type=click.IntRange(1, 3650), default=DAYS, show_default=True)
@click.option("--source", default="", help="Only sessions from there: cli, acp, telegram …")
@as_json_option
@click.pass_context
def command(ctx: click.Context, days: int, source: str, as_json: bool) -> None:
    from hermes.homes.insights import insights

    async def work(app: App) -> Insights:
        return await insights(
            app.run, app.journal, app.library, app.skills(), app.memory, days=days, source=source
        )

    found = with_app(ctx, work)
    if as_json:
        print_json(plain(found))
        return
    # Titles are other people's words; colours are put around what is clean already.
    for line in insight_lines(found, paint=styled):
        print(line)
