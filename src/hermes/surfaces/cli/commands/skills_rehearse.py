"""`hermes skills rehearse`: a change of a skill, tried on sessions of the past."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hermes.app.build import App
from hermes.app.replay import learning_deps
from hermes.codec.json import plain
from hermes.commands.visible import clean
from hermes.config.findings import Level
from hermes.core.commands import Retitle
from hermes.core.errors import UsageError
from hermes.core.session_request import Opening
from hermes.skills.library import Skilled
from hermes.surfaces.cli.output import as_json_option, print_json, with_app
from hermes.surfaces.cli.style import mark

if TYPE_CHECKING:
    from hermes.learning.verdicts import Rehearsal, Verdict
    from hermes.skills.history import Version
    from hermes.skills.library import Skilled

SIGNS: dict[Verdict, Level] = {
    "promote": "ok",
    "refuse": "error",
    "keep": "warn",
    "unrehearsed": "warn",
}
SAYS: dict[Verdict, str] = {
    "promote": "Nothing gets worse.",
    "refuse": "It would do harm.",
    "keep": "It cannot be told: some calls were never made, so nobody knows their results.",
    "unrehearsed": "No session can be played again with it.",
}


@click.command(
    help="Try a change of a skill on the sessions that used it: the same task and the same results "
    "of tools, with the other text. NAME has a change that waits, or name a VERSION. The model is "
    "asked, so it costs what a session costs."
)
@click.argument("name")
@click.argument("version", required=False, default="")
@click.option("--sessions", "most", type=click.IntRange(min=1), help="How many of them.")
@click.option("--session", default="", help="Only this one.")
@click.option("--decide", is_flag=True, help="Then use what waits, or refuse it.")
@as_json_option
@click.pass_context
def rehearse(
    ctx: click.Context,
    name: str,
    version: str,
    most: int | None,
    session: str,
    decide: bool,
    as_json: bool,
) -> None:
    from hermes.learning.learner import decide as decided
    from hermes.learning.rehearsals import Rehearsals

    async def work(app: App) -> tuple[Rehearsal, str]:
        skills = app.skills(str(Path.cwd().resolve()))
        wanted = _wanted(skills, name, version)
        only = await app.library.find(session) if session else ""
        # What it costs is booked in a session of its own.
        purse = await app.open(Opening(source="tool", attended=False))
        done = await Rehearsals(learning_deps(app), skills, purse.meter).rehearse(
            wanted, most=most or app.settings.skills.rehearse, session=only
        )
        if any(not trial.problem for trial in done.trials):
            title = await app.library.free_title(f"Rehearsal of {wanted.name}")
            await purse.send(Retitle(title=title))
        return done, decided(learning_deps(app), skills, wanted, done) if decide else ""

    done, words = with_app(ctx, work)
    if as_json:
        trials = [{**plain(trial), "judgement": trial.judgement} for trial in done.trials]
        print_json({**plain(done), "trials": trials, "verdict": done.verdict})
    else:
        print(clean("\n".join(map(str, done.trials))))
        sign, says = mark(SIGNS[done.verdict]), f"{SAYS[done.verdict]} {words}".rstrip()
        print(f"{sign} {done.skill} {done.version}: {says}")
    if done.verdict == "refuse":
        ctx.exit(1)


def _wanted(skills: Skilled, name: str, version: str) -> Version:
    """The version that is named, else the newest change that waits."""
    if version:
        return skills.shelf.version(name, version)
    waiting = [each for each in skills.shelf.proposals() if each.name == name]
    if not waiting:
        skills.shelf.find(name)
        raise UsageError(
            f"No change of {name} waits; name a version of `hermes skills history {name}`."
        )
    return waiting[-1]
