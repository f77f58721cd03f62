"""`hermes undo` and `checkpoints`: undo file changes, and what is stored for it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hermes.app.app import App
from hermes.commands.rollback import line_of, preview_lines, result_lines
from hermes.core.errors import UsageError
from hermes.surfaces.cli.output import Output, confirm, format_time, json_output, with_app
from hermes.undo.service import make_undo_service

if TYPE_CHECKING:
    from hermes.undo.history import StoreStatus
    from hermes.undo.retention import PruneResult


@click.group(help="Checkpoints: what is stored so that file changes can be undone.")
def checkpoints_command() -> None:
    pass


@checkpoints_command.command(help="Show how much is stored, for which projects and since when.")
@json_output(with_app)
async def status(app: App) -> Output:
    found = await make_undo_service(app.run).status()
    return Output(found, _status_lines(found))


def _status_lines(found: StoreStatus) -> Iterator[str]:
    yield f"{found.folder}: {_megabytes(found.total_bytes)}, {found.contents} contents"
    yield f"{found.checkpoints} checkpoints of {found.sessions} sessions"
    if found.oldest_at is not None:
        yield f"the oldest is from {format_time(found.oldest_at)}"
    for project in found.projects:
        yield f"  {project}"


@checkpoints_command.command(help="Delete what exceeds the age and size limits of the settings.")
@json_output(with_app)
async def prune(app: App) -> Output:
    return _report(await make_undo_service(app.run).prune())


@checkpoints_command.command(help="Delete everything that no running session needs.")
@click.option("-f", "--force", "-y", "--yes", "force", is_flag=True, help="Do not ask.")
@json_output()
def clear(ctx: click.Context, force: bool) -> Output:
    if not force:
        question = "No earlier change can be undone after this. Go on?"
        confirm(question, otherwise="Nothing was removed.")
    return _report(with_app(ctx, lambda app: make_undo_service(app.run).clear()))


def _report(done: PruneResult) -> Output:
    freed, rest = _megabytes(done.bytes), _megabytes(done.total_bytes)
    return Output(done, f"{done.turns} turns removed, {freed} freed; {rest} remain.")


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"


SHARED = ("kept", "lost", "notes")


@click.command(
    help="Undo the file changes of the last turn; with N, of the last N entries of `--list`. Your "
    "own later changes stay. An undo can be undone: it becomes number 1 of the list."
)
@click.argument("number", metavar="[N]", type=click.IntRange(min=1), required=False)
@click.option("--session", metavar="ID", help="Of this session; default: the last in this folder.")
@click.option("--to", "turn", metavar="TURN", help="This turn and all after it.")
@click.option("--file", "path", metavar="PATH", help="Only this file or folder.")
@click.option("--preview", is_flag=True, help="Only show what would be done.")
@click.option("--overwrite", is_flag=True, help="Also files that were changed since.")
@click.option("--list", "only_list", is_flag=True, help="List what can be undone.")
@json_output(with_app)
async def undo_command(
    app: App,
    number: int | None,
    session: str | None,
    turn: str | None,
    path: str | None,
    preview: bool,
    overwrite: bool,
    only_list: bool,
) -> Output:
    if number and turn:
        raise UsageError("Give a number or --to TURN, not both.")
    undo = make_undo_service(app.run)
    here = str(Path.cwd())
    session_id = await app.archive.find(session) if session else await undo.session_of(here)
    if only_list:
        found = await undo.checkpoints(session_id)
        now = app.run.world.clock.now()
        lines = [line_of(each, now) for each in found]
        return Output(found, lines or "This session has changed no files.")
    plan = await undo.plan(
        session_id,
        number=number or 0,
        turn=turn or "",
        path=posixpath.normpath(posixpath.join(here, path)) if path else "",
        overwrite=overwrite,
    )
    if preview:
        data = {
            "restored": [step.path for step in plan.steps if step.target is not None],
            "deleted": [step.path for step in plan.steps if step.target is None],
            **{name: getattr(plan, name) for name in SHARED},
        }
        text = preview_lines(plan, here)
    else:
        done = await undo.restore(plan, session=session_id, whole=not path)
        data = {name: getattr(done, name) for name in ("restored", "deleted", *SHARED)}
        text = result_lines(done, here)
    return Output({"session": session_id, "turns": plan.turns, "preview": preview, **data}, text)
