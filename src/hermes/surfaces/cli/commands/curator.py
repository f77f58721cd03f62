"""`hermes curator`: archive agent-written skills that are no longer used."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import click

from hermes.app.app import App
from hermes.commands.skills import curator_lines, move_lines
from hermes.core.session_request import SessionRequest
from hermes.surfaces.cli.command_context import home_of, mark, with_app
from hermes.surfaces.cli.output import CommandGroup, Output, dry_run_option, fields

if TYPE_CHECKING:
    from hermes.skills.consolidation import MergeResult
    from hermes.skills.curator import Curator
    from hermes.skills.library import SkillLibrary

AGAIN = "from hermes.surfaces.cli.entry import main; main()"
NOTHING = "There is nothing to archive."

command = CommandGroup(help="Archive agent-written skills that are not used. Nothing is deleted.")
with_skills = with_app.part(lambda app: app.skills())
with_curator = with_skills.part(lambda skills: skills.curator())


@command.json("Show the last run, and what a run would do now.", with_curator)
def status(curator: Curator) -> Output:
    plan, archived = curator.plan(), curator.list_archived()
    data = {**fields(curator.state()), "plan": plan, "archived": archived}
    return Output(data, curator_lines(curator))


@command.json("Archive unused skills now.")
@dry_run_option
@click.option("--consolidate", is_flag=True, help="Also let a model merge overlapping skills.")
@click.option(
    "--background", is_flag=True, help="Run in the background, with output in curator.log."
)
def run(ctx: click.Context, dry_run: bool, consolidate: bool, background: bool) -> Output:
    if background:
        return _run_in_background(ctx)

    moves = with_curator(ctx, lambda curator: curator.plan() if dry_run else curator.run())
    merged = with_app(ctx, lambda app: _consolidate(app, dry_run)) if consolidate else ()
    verb = "would replace" if dry_run else "replaces"
    lines = [
        *move_lines(moves, "would be" if dry_run else "is"),
        *(f"{each.into:<28} {verb} {', '.join(each.absorbed)}" for each in merged),
    ]
    return Output({"dry_run": dry_run, "moves": moves, "merged": merged}, lines or NOTHING)


def _run_in_background(ctx: click.Context) -> Output:
    """Start the same command again in a process that outlives this one."""
    home = home_of(ctx)
    log = home.ensure_folder(home.logs) / "curator.log"
    argv = [word for word in sys.argv[1:] if word != "--background"]
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "ab") as out:
        child = subprocess.Popen(
            [sys.executable, "-c", AGAIN, *argv],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    line = f"{mark('ok')} Process {child.pid} runs in the background; its output is in {log}."
    return Output({"process": child.pid, "log": str(log)}, line)


async def _consolidate(app: App, dry_run: bool) -> tuple[MergeResult, ...]:
    from hermes.skills.consolidation import Consolidation

    # A session of its own accounts for the cost.
    session = await app.open(SessionRequest(source="tool", attended=False))
    models, settings, skills = app.models, app.context.settings, app.skills()
    return await Consolidation(models, settings, skills, session, dry_run=dry_run).run()


@command.text("Archive skills that were not used for some days.", with_curator)
@click.option(
    "--days", type=click.IntRange(min=1), default=90, show_default=True, help="Set how many days."
)
def prune(curator: Curator, days: int) -> list[str]:
    return move_lines(curator.run(days), "is") or [NOTHING]


@command.text("Stop automatic runs.", with_curator)
def pause(curator: Curator) -> str:
    curator.pause(True)
    return f"{mark('ok')} Automatic runs are off."


@command.text("Resume automatic runs.", with_curator)
def resume(curator: Curator) -> str:
    curator.pause(False)
    return f"{mark('ok')} Automatic runs are on."


@command.text("Never archive a skill.", with_skills)
def pin(skills: SkillLibrary, name: str) -> str:
    return _pin(skills, name, pinned=True)


@command.text("Allow a pinned skill to be archived again.", with_skills)
def unpin(skills: SkillLibrary, name: str) -> str:
    return _pin(skills, name, pinned=False)


def _pin(skills: SkillLibrary, name: str, *, pinned: bool) -> str:
    skills.store.find(name)
    skills.usages.pin(name, pinned)
    return f"{mark('ok')} {name} is {'pinned' if pinned else 'not pinned'}."


@command.text("Move a skill to the archive.", with_curator)
def archive(curator: Curator, name: str) -> str:
    return f"{mark('ok')} {curator.archive(name)}"


@command.text("Move a skill back from the archive.", with_curator)
def restore(curator: Curator, name: str) -> str:
    return f"{mark('ok')} {curator.restore(name)}"


@command.json("List the archived skills.", with_curator)
def list_archived(curator: Curator) -> Output:
    names = curator.list_archived()
    return Output(names, names or "The archive is empty.")


@command.text("Back up all skills.", with_curator)
def backup(curator: Curator) -> str:
    return f"{mark('ok')} {curator.backup()}"


@command.text("Restore the skills of a backup that are missing in this home.", with_curator)
@click.option("--list", "only_list", is_flag=True, help="List the backups; restore none.")
@click.option("--id", "stamp", default="", help="Use this backup (default: the newest).")
def rollback(curator: Curator, only_list: bool, stamp: str) -> tuple[str, ...]:
    found = curator.backups() if only_list else curator.rollback(stamp)
    return found or ("There are no backups." if only_list else "No skill is missing.",)
