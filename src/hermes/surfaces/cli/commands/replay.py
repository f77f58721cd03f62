"""`hermes replay`: a recorded session once more, offline, and whether anything is different."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from hermes.app.build import App
from hermes.app.replay import replay
from hermes.commands.visible import one_line
from hermes.core.errors import NotFound, UsageError
from hermes.replay.gathering import gather
from hermes.replay.replay import Overrides
from hermes.replay.report import Divergence, Report
from hermes.surfaces.cli.output import as_json_option, columns, print_json, with_app
from hermes.surfaces.cli.style import styled

LINE = 400
WHERE = {
    "event": "another event",
    "request": "another request to the model",
    "missing": "it did not happen",
    "extra": "nothing more was recorded",
    "turn": "it belongs to another turn",
}


@click.command(help="Play a recorded session again, offline: SESSION is a file or one of yours.")
@click.argument("session")
@click.option(
    "--tools",
    type=click.Choice(["recorded", "live"]),
    default="recorded",
    show_default=True,
    help="Give the results of then, or really run in a copy of the folder.",
)
@as_json_option
@click.pass_context
def command(
    ctx: click.Context, session: str, tools: Literal["recorded", "live"], as_json: bool
) -> None:
    async def work(app: App) -> Report:
        overrides = Overrides(mode=tools)
        if (file := Path(session)).is_file():
            return await replay(file, overrides, env=app.env)
        try:
            recording = await gather(app.run, app.journal, await app.library.find(session))
        except NotFound as error:
            raise UsageError(f"{error} A file of that name is not here either.") from error
        return await replay(recording, overrides, env=app.env)

    report = with_app(ctx, work)
    if as_json:
        print_json({"identical": report.identical, **_columns(report)})
    else:
        _print(report)
    if not report.identical:
        ctx.exit(1)


def _columns(report: Report) -> dict[str, object]:
    found = columns(report)
    assert isinstance(found, dict)
    return found


def _print(report: Report) -> None:
    for words in report.words:
        print(styled(one_line(words), "dim"))
    if report.restarts:
        places = ", ".join(map(str, report.restarts))
        print(styled(f"Another process went on after record {places}.", "dim"))
    if report.divergence is not None:
        _print_divergence(report, report.divergence)
        return
    requests = f", {report.requests} request(s)" if report.requests else ""
    hashes = ", the same hashes" if report.hashes == "same" else ""
    print(f"Identical: {report.records} record(s){requests}{hashes}.")


def _print_divergence(report: Report, found: Divergence) -> None:
    place = f"record {found.n} ({found.kind})"
    print(f"Diverged at {place} of {report.records}: {WHERE[found.where]}.")
    if found.field:
        print(f"  field     {one_line(found.field, LINE)}")
    if found.recorded:
        print(f"  recorded  {one_line(found.recorded, LINE)}")
    if found.now:
        print(f"  now       {one_line(found.now, LINE)}")
