"""`hermes curator`: archive agent-written skills that are no longer used."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from hermes.app.app import App
from hermes.core.session_request import SessionRequest
from hermes.skills.library import SkillLibrary
from hermes.surfaces.cli.command_context import home_of, mark
from hermes.surfaces.cli.output import (
    Output,
    fields,
    format_time,
    json_output,
    text_output,
    with_app,
)

if TYPE_CHECKING:
    from hermes.skills.consolidation import MergeResult
    from hermes.skills.curator import Move

AGAIN = "from hermes.surfaces.cli.entry import main; main()"
NOTHING = "Nothing to do."


@click.group(help="Archive agent-written skills that are no longer used. Nothing is deleted.")
def command() -> None:
    pass


@command.command(help="Show the last run, and what a run would do now.")
@json_output(with_app)
async def status(app: App) -> Output:
    curator = app.skills().curator()
    state, moves, archived = curator.state(), curator.plan(), curator.list_archived()
    last = format_time(state.last_run_at) if state.last_run_at else "never"
    lines = [
        f"{'paused' if state.paused else 'on'}; last run: {last}",
        *_move_lines(moves, "would be"),
        f"{len(archived)} in the archive",
    ]
    return Output({**fields(state), "plan": moves, "archived": archived}, lines)


def _move_lines(moves: tuple[Move, ...], verb: str) -> Iterator[str]:
    for move in moves:
        yield f"{move.name:<28} {verb} {move.to} ({move.idle_days} days without use)"


@command.command(help="Run now.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--consolidate", is_flag=True, help="Also let a model merge overlapping skills.")
@click.option("--background", is_flag=True, help="Do not wait; the result is in curator.log.")
@json_output()
def run(ctx: click.Context, dry_run: bool, consolidate: bool, background: bool) -> Output:
    if background:
        return _run_in_background(ctx)

    async def work(app: App) -> tuple[tuple[Move, ...], tuple[MergeResult, ...]]:
        skills = app.skills()
        curator = skills.curator()
        moves = curator.plan() if dry_run else curator.run()
        return moves, await _consolidate(app, skills, dry_run) if consolidate else ()

    moves, merged = with_app(ctx, work)
    verb = "would replace" if dry_run else "replaces"
    lines = [
        *_move_lines(moves, "would be" if dry_run else "is"),
        *(f"{each.into:<28} {verb} {', '.join(each.absorbed)}" for each in merged),
    ]
    return Output({"dry_run": dry_run, "moves": moves, "merged": merged}, lines or NOTHING)


def _run_in_background(ctx: click.Context) -> Output:
    """Start the same command again in a process that outlives this one."""
    home = home_of(ctx)
    log = home.ensure_folder(home.logs) / "curator.log"
    words = [word for word in sys.argv[1:] if word != "--background"]
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "ab") as out:
        child = subprocess.Popen(
            [sys.executable, "-c", AGAIN, *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    line = f"{mark('ok')} Process {child.pid} is running; its output goes to {log}."
    return Output({"process": child.pid, "log": str(log)}, line)


async def _consolidate(app: App, skills: SkillLibrary, dry_run: bool) -> tuple[MergeResult, ...]:
    from hermes.skills.consolidation import Consolidation

    # A session of its own accounts for the cost.
    session = await app.open(SessionRequest(source="tool", attended=False))
    return await Consolidation(app.models, app.run.settings, skills, session, dry_run=dry_run).run()


@command.command(help="Archive what was not used for this many days.")
@click.option("--days", type=click.IntRange(min=1), default=90, show_default=True, help="Days.")
@text_output(with_app)
async def prune(app: App, days: int) -> list[str]:
    return [*_move_lines(app.skills().curator().run(days), "is")] or [NOTHING]


@command.command(help="Stop automatic runs.")
@text_output(with_app)
async def pause(app: App) -> str:
    app.skills().curator().pause(True)
    return f"{mark('ok')} paused"


@command.command(help="Resume automatic runs.")
@text_output(with_app)
async def resume(app: App) -> str:
    app.skills().curator().pause(False)
    return f"{mark('ok')} on"


@command.command(help="Never archive this skill.")
@click.argument("name")
@text_output(with_app)
async def pin(app: App, name: str) -> str:
    return _pin(app, name, pinned=True)


@command.command(help="Allow this skill to be archived again.")
@click.argument("name")
@text_output(with_app)
async def unpin(app: App, name: str) -> str:
    return _pin(app, name, pinned=False)


def _pin(app: App, name: str, *, pinned: bool) -> str:
    skills = app.skills()
    skills.store.find(name)
    skills.usages.pin(name, pinned)
    return f"{mark('ok')} {name} is {'pinned' if pinned else 'not pinned'}."


@command.command(help="Move a skill to the archive.")
@click.argument("name")
@text_output(with_app)
async def archive(app: App, name: str) -> str:
    return f"{mark('ok')} {app.skills().curator().archive(name)}"


@command.command(help="Move a skill back from the archive.")
@click.argument("name")
@text_output(with_app)
async def restore(app: App, name: str) -> str:
    return f"{mark('ok')} {app.skills().curator().restore(name)}"


@command.command("list-archived", help="List the archived skills.")
@json_output(with_app)
async def list_archived(app: App) -> Output:
    names = app.skills().curator().list_archived()
    return Output(names, names or "The archive is empty.")


@command.command(help="Copy all skills.")
@text_output(with_app)
async def backup(app: App) -> str:
    return f"{mark('ok')} {app.skills().curator().backup()}"


@command.command(help="Restore the skills of a copy that this home no longer has.")
@click.option("--list", "only_list", is_flag=True, help="List the copies.")
@click.option("--id", "stamp", default="", help="Use this copy; the default is the newest.")
@text_output(with_app)
async def rollback(app: App, only_list: bool, stamp: str) -> tuple[str, ...]:
    curator = app.skills().curator()
    found = curator.backups() if only_list else curator.rollback(stamp)
    return found or ("There are no copies." if only_list else "Nothing was missing.",)
