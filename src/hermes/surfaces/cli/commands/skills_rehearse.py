"""`hermes skills rehearse`: test a skill change on past sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hermes.app.build import App
from hermes.app.replay import learning_deps
from hermes.codec.json import plain
from hermes.commands.visible import sanitize
from hermes.config.findings import Level
from hermes.core.commands import Retitle
from hermes.core.errors import UsageError
from hermes.core.session_request import SessionRequest
from hermes.surfaces.cli.output import Output, json_output, with_app
from hermes.surfaces.cli.style import mark

if TYPE_CHECKING:
    from hermes.learning.verdicts import Verdict
    from hermes.skills.history import Version
    from hermes.skills.library import SkillLibrary

SIGNS: dict[Verdict, Level] = {
    "promote": "ok",
    "refuse": "error",
    "keep": "warn",
    "unrehearsed": "warn",
}
SAYS: dict[Verdict, str] = {
    "promote": "No result gets worse.",
    "refuse": "Some results get worse.",
    "keep": "Inconclusive: some calls were never recorded, so their results are unknown.",
    "unrehearsed": "No session can be replayed with it.",
}


@click.command(
    help="Test a skill change on sessions that used the skill: the same task and the same tool "
    "results, with the new text. Without VERSION, the pending change of NAME is tested. The model "
    "is called, which costs as much as a session."
)
@click.argument("name")
@click.argument("version", required=False, default="")
@click.option("--sessions", "most", type=click.IntRange(min=1), help="How many sessions.")
@click.option("--session", default="", help="Only this session.")
@click.option("--decide", is_flag=True, help="Then apply or reject the pending change.")
@json_output(with_app)
async def rehearse(
    app: App, name: str, version: str, most: int | None, session: str, decide: bool
) -> Output:
    from hermes.learning.learner import decide as decide_on
    from hermes.learning.rehearsals import Rehearsals

    skills = app.skills(str(Path.cwd().resolve()))
    wanted = _find_version(skills, name, version)
    only = await app.archive.find(session) if session else ""
    # A session of its own accounts for the cost.
    own = await app.open(SessionRequest(source="tool", attended=False))
    done = await Rehearsals(learning_deps(app), skills, own.meter).rehearse(
        wanted, most=most or app.settings.skills.rehearse, session=only
    )
    if any(not trial.problem for trial in done.trials):
        title = await app.archive.free_title(f"Rehearsal of {wanted.name}")
        await own.send(Retitle(title=title))
    words = decide_on(learning_deps(app), skills, wanted, done) if decide else ""
    trials = [{**plain(trial), "judgement": trial.judgement} for trial in done.trials]
    verdict = f"{SAYS[done.verdict]} {words}".rstrip()
    lines = [
        sanitize("\n".join(map(str, done.trials))),
        f"{mark(SIGNS[done.verdict])} {done.skill} {done.version}: {verdict}",
    ]
    data = {**plain(done), "trials": trials, "verdict": done.verdict}
    return Output(data, lines, code=done.verdict == "refuse")


def _find_version(skills: SkillLibrary, name: str, version: str) -> Version:
    """The named version, else the newest pending change."""
    if version:
        return skills.shelf.version(name, version)
    waiting = [each for each in skills.shelf.proposals() if each.name == name]
    if not waiting:
        skills.shelf.find(name)
        raise UsageError(
            f"No change of {name} is pending; name a version from `hermes skills history {name}`."
        )
    return waiting[-1]
