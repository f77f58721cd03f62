"""`hermes skills history`, `revert`, `pending`, `rehearse`, `reset` …: the versions of skills."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hermes.app.app import App
from hermes.app.replay import learning_deps
from hermes.codec.json import plain
from hermes.codec.values import JsonObject
from hermes.commands.formatting import sanitize
from hermes.commands.skills import difference, proposal_line, tree_difference, version_lines
from hermes.config.diagnostics import Level
from hermes.core.commands import Retitle
from hermes.core.errors import UsageError
from hermes.core.session_request import SessionRequest
from hermes.surfaces.cli.command_context import mark, with_app
from hermes.surfaces.cli.output import CommandGroup, Output

if TYPE_CHECKING:
    from hermes.learning.rehearsal import Verdict
    from hermes.skills.history import Version
    from hermes.skills.library import SkillLibrary

with_skills = with_app.part(lambda app: app.skills(str(Path.cwd().resolve())))
version_commands = CommandGroup()


@version_commands.text(
    "Restore the original text of a bundled skill; your edits stay in its history.", with_skills
)
@click.option("--restore", is_flag=True, help="Also restore a removed skill.")
def reset(skills: SkillLibrary, name: str, restore: bool) -> str:
    version = skills.reset(name, restore=restore)
    return f"{mark('ok')} {name} is reset, as version {version}."


@version_commands.json("List the bundled skills that were edited or removed.", with_skills)
def list_modified(skills: SkillLibrary) -> Output:
    edited, removed = skills.seeds.list_modified(), skills.seeds.list_removed()
    lines = [
        *(f"{name}  edited; see `hermes skills diff {name}`" for name in edited),
        *(f"{name}  removed; see `hermes skills reset {name} --restore`" for name in removed),
    ]
    data = {"modified": edited, "removed": removed}
    return Output(data, lines or "No bundled skill was edited or removed.")


@version_commands.text("Stop adding bundled skills to this home.", with_skills)
def opt_out(skills: SkillLibrary) -> str:
    skills.seeds.opt(out=True)
    return f"{mark('ok')} Bundled skills are no longer added or updated; existing ones stay."


@version_commands.text("Add bundled skills to this home again.", with_skills)
def opt_in(skills: SkillLibrary) -> str:
    skills.seeds.opt(out=False)
    return f"{mark('ok')} The next start adds the bundled skills."


def _facts(version: Version) -> JsonObject:
    return {"state": version.state, **plain(version), "cause": plain(version.cause)}


@version_commands.json("List the versions of a skill: when, by whom and why.", with_skills)
def history(skills: SkillLibrary, name: str) -> Output:
    versions = skills.store.history(name)
    if not versions:
        skills.store.find(name)
    lines = sanitize("\n".join(version_lines(versions)))
    return Output([*map(_facts, versions)], lines or "This skill was never changed.")


@version_commands.text(
    "Show the changes of a version, or your edits of a bundled skill.", with_skills
)
def diff(skills: SkillLibrary, name: str, version: str = "", other: str = "") -> str:
    if version:
        second = skills.store.version(name, other) if other else None
        return sanitize(difference(skills.store, skills.store.version(name, version), second))
    versions = [each for each in skills.store.history(name) if not each.removed]
    if name in skills.seeds.manifest():
        before = skills.seeds.tree(name)[0]
    else:
        before = skills.store.tree(versions[0]) if versions else {}
    return sanitize(tree_difference(before, skills.tree(name)))


@version_commands.json("Restore an older version of a skill, also of a deleted one.", with_skills)
def revert(skills: SkillLibrary, name: str, version: str = "") -> Output:
    done = skills.revert(name, version or skills.previous_version(name))
    line = f"{mark('ok')} {done.name}: {done.action}, as version {done.id}."
    return Output(_facts(done), line)


@version_commands.json("List the skill changes that need your approval.", with_skills)
def pending(skills: SkillLibrary) -> Output:
    waiting = skills.store.proposals()
    lines = sanitize("\n".join(map(proposal_line, waiting)))
    return Output([*map(_facts, waiting)], lines or "No changes are pending.")


@version_commands.text("Approve a pending change.", with_skills)
def approve(skills: SkillLibrary, version: str) -> str:
    done = skills.approve(skills.store.proposal(version))
    return f"{mark('ok')} {done.name} is now at version {done.id}."


@version_commands.text("Reject a pending change; it stays in the history.", with_skills)
@click.option("--reason", default="rejected by the owner", help="Record why you reject the change.")
def reject(skills: SkillLibrary, version: str, reason: str) -> str:
    done = skills.store.refuse(skills.store.proposal(version), reason)
    return f"{mark('ok')} {done.id} of {done.name} is rejected."


SIGNS: dict[Verdict, Level] = {
    "promote": "ok",
    "refuse": "error",
    "keep": "warn",
    "unrehearsed": "warn",
}
SAYS: dict[Verdict, str] = {
    "promote": "No result gets worse.",
    "refuse": "Some results get worse.",
    "keep": "The result is open: some tool calls were never recorded.",
    "unrehearsed": "No past session can be replayed with it.",
}


@version_commands.json(
    "Replay past sessions with a changed skill. Without VERSION, use the pending change of NAME. "
    "The model is called, which costs as much as these sessions.",
    with_app,
)
@click.option(
    "--sessions", "most", type=click.IntRange(min=1), metavar="N", help="Replay at most N sessions."
)
@click.option("--session", default="", metavar="ID", help="Replay only this session.")
@click.option("--decide", is_flag=True, help="Then approve or reject the change automatically.")
async def rehearse(
    app: App, *, name: str, version: str = "", most: int | None, session: str, decide: bool
) -> Output:
    from hermes.learning.learner import decide as decide_on
    from hermes.learning.rehearsals import Rehearsals

    skills = app.skills(str(Path.cwd().resolve()))
    wanted = _find_version(skills, name, version)
    only = await app.archive.find(session) if session else ""
    # A session of its own accounts for the cost.
    own = await app.open(SessionRequest(source="tool", attended=False))
    done = await Rehearsals(learning_deps(app), skills, own.meter).rehearse(
        wanted, most=most or app.context.settings.skills.rehearse, session=only
    )
    if any(not trial.problem for trial in done.trials):
        title = await app.archive.free_title(f"Rehearsal of {wanted.name}")
        await own.send(Retitle(title=title))
    decision = decide_on(learning_deps(app), skills, wanted, done) if decide else ""
    trials = [{**plain(trial), "judgement": trial.judgement} for trial in done.trials]
    verdict = f"{SAYS[done.verdict]} {decision}".rstrip()
    lines = [
        sanitize("\n".join(map(str, done.trials))),
        f"{mark(SIGNS[done.verdict])} {done.skill} {done.version}: {verdict}",
    ]
    data = {**plain(done), "trials": trials, "verdict": done.verdict}
    return Output(data, lines, code=done.verdict == "refuse")


def _find_version(skills: SkillLibrary, name: str, version: str) -> Version:
    """The named version, else the newest pending change."""
    if version:
        return skills.store.version(name, version)
    waiting = [each for each in skills.store.proposals() if each.name == name]
    if not waiting:
        skills.store.find(name)
        raise UsageError(
            f"{name} has no pending change; name a version from `hermes skills history {name}`."
        )
    return waiting[-1]
