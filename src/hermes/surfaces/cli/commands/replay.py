"""`hermes replay`: replay a recorded session offline and report differences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import click

from hermes.app.build import App
from hermes.app.replay import replay
from hermes.commands.visible import one_line
from hermes.core.errors import NotFound, UsageError
from hermes.replay.gathering import collect_recording
from hermes.replay.replay import ReplayOverrides
from hermes.replay.report import Divergence, Report
from hermes.surfaces.cli.output import Output, fields, json_output, with_app
from hermes.surfaces.cli.style import apply_style

LONGEST = 400
WHERE = {
    "event": "a different event",
    "request": "a different request to the model",
    "missing": "it did not happen",
    "extra": "nothing more was recorded",
    "turn": "it belongs to a different turn",
}


@click.command(help="Replay a recorded session offline. SESSION is a file or a past session.")
@click.argument("session")
@click.option(
    "--tools",
    type=click.Choice(["recorded", "live"]),
    default="recorded",
    show_default=True,
    help="Use the recorded results, or run the tools in a copy of the folder.",
)
@json_output()
def replay_command(ctx: click.Context, session: str, tools: Literal["recorded", "live"]) -> Output:
    overrides, file = ReplayOverrides(mode=tools), Path(session)

    async def work(app: App) -> Report:
        try:
            recording = await collect_recording(
                app.run, app.journal, await app.archive.find(session)
            )
        except NotFound as error:
            raise UsageError(f"{error} There is no file of that name either.") from error
        return await replay(recording, overrides, env=app.env)

    if file.is_file():
        report = with_app(ctx, lambda app: replay(file, overrides, env=app.env))
    else:
        report = with_app(ctx, work)
    data = {"identical": report.identical, **fields(report)}
    return Output(data, _lines(report), code=not report.identical)


def _lines(report: Report) -> Iterator[str]:
    for words in report.words:
        yield apply_style(one_line(words), "dim")
    if report.restarts:
        places = ", ".join(map(str, report.restarts))
        yield apply_style(f"Another process continued after record {places}.", "dim")
    if report.divergence is not None:
        yield from _divergence_lines(report, report.divergence)
        return
    requests = f", {report.requests} request(s)" if report.requests else ""
    hashes = ", the same hashes" if report.hashes == "same" else ""
    yield f"Identical: {report.records} record(s){requests}{hashes}."


def _divergence_lines(report: Report, found: Divergence) -> Iterator[str]:
    place = f"record {found.n} ({found.kind})"
    yield f"Diverged at {place} of {report.records}: {WHERE[found.where]}."
    for name, text in (("field", found.field), ("recorded", found.recorded), ("now", found.now)):
        if text:
            yield f"  {name:<8}  {one_line(text, LONGEST)}"
