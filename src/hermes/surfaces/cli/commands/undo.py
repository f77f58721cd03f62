"""`hermes undo` and `checkpoints`: undo file changes, and what is stored for it."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hermes.commands.formatting import format_time
from hermes.commands.rollback import line_of, preview_lines, result_lines
from hermes.core.errors import UsageError
from hermes.surfaces.cli.command_context import with_app
from hermes.surfaces.cli.output import CommandGroup, Output, confirm, json_command
from hermes.undo.workspace import UndoService

if TYPE_CHECKING:
    from hermes.journal.archive import SessionArchive
    from hermes.undo.retention import CheckpointPruneResult

SHARED = ("kept", "lost", "notes")

checkpoints_command = CommandGroup(
    help="Checkpoints: what is stored so that file changes can be undone."
)
with_undo = with_app.part(lambda app: UndoService(app.run))


@checkpoints_command.json("Show how much is stored, for which projects and since when.", with_undo)
async def status(undo: UndoService) -> Output:
    found = await undo.in_thread(lambda history: history.status())

    def lines() -> Iterator[str]:
        yield f"{found.folder}: {_megabytes(found.total_bytes)}, {found.contents} contents"
        yield f"{found.checkpoints} checkpoints of {found.sessions} sessions"
        if found.oldest_at is not None:
            yield f"the oldest is from {format_time(found.oldest_at)}"
        for project in found.projects:
            yield f"  {project}"

    return Output(found, lines())


@checkpoints_command.json("Delete what exceeds the age and size limits of the settings.", with_undo)
async def prune(undo: UndoService) -> Output:
    return _report(await undo.in_thread(lambda history: history.prune()))


@checkpoints_command.json("Delete everything that no running session needs.")
@click.option("-f", "--force", "-y", "--yes", "force", is_flag=True, help="Do not ask.")
def clear(ctx: click.Context, force: bool) -> Output:
    question = "No earlier change can be undone after this. Continue?"
    confirm(question, yes=force, otherwise="Nothing was removed.")
    return _report(with_undo(ctx, lambda undo: undo.in_thread(lambda history: history.clear())))


def _report(done: CheckpointPruneResult) -> Output:
    freed, rest = _megabytes(done.bytes), _megabytes(done.total_bytes)
    return Output(done, f"{done.turns} turns removed, {freed} freed; {rest} remain.")


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"


@json_command(
    "Undo the file changes of the last turn; with N, of the last N entries of `--list`. Your "
    "own later changes stay. An undo can be undone: it becomes number 1 of the list.",
    with_app.part(lambda app: (UndoService(app.run), app.archive)),
)
@click.argument("number", metavar="[N]", type=click.IntRange(min=1), required=False)
@click.option("--session", metavar="ID", help="Of this session; default: the last in this folder.")
@click.option("--to", "turn", metavar="TURN", help="This turn and all after it.")
@click.option("--file", "path", metavar="PATH", help="Only this file or folder.")
@click.option("--preview", is_flag=True, help="Only show what would be done.")
@click.option("--overwrite", is_flag=True, help="Also files that were changed since.")
@click.option("--list", "only_list", is_flag=True, help="List what can be undone.")
async def undo_command(
    services: tuple[UndoService, SessionArchive],
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
    undo, archive = services
    here = str(Path.cwd())
    if session:
        session_id = await archive.find(session)
    else:
        session_id = await undo.in_thread(lambda history: history.session_of(here))
    if only_list:
        found = await undo.in_thread(lambda history: history.checkpoints(session_id))
        lines = [line_of(each, time.time()) for each in found]
        return Output(found, lines or "This session has changed no files.")
    plan = await undo.in_thread(
        lambda history: history.plan(
            session_id,
            number=number or 0,
            turn=turn or "",
            path=posixpath.normpath(posixpath.join(here, path)) if path else "",
            overwrite=overwrite,
        )
    )
    if preview:
        data = {
            "restored": [step.path for step in plan.steps if step.target is not None],
            "deleted": [step.path for step in plan.steps if step.target is None],
            **{name: getattr(plan, name) for name in SHARED},
        }
        text = preview_lines(plan, here)
    else:
        done = await undo.in_thread(
            lambda history: history.restore(plan, session=session_id, whole=not path)
        )
        data = {name: getattr(done, name) for name in ("restored", "deleted", *SHARED)}
        text = result_lines(done, here)
    return Output({"session": session_id, "turns": plan.turns, "preview": preview, **data}, text)
