"""`hermes undo` and `hermes checkpoints`: undo file changes, and the file copies for this."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hermes.app.session_environment import end_survivors
from hermes.commands.formatting import format_bytes, format_time, one_line, plural
from hermes.commands.rollback import line_of, preview_lines, result_lines
from hermes.core.errors import NotFound, UsageError
from hermes.surfaces.cli.command_context import with_app
from hermes.surfaces.cli.output import CommandGroup, Output, confirm, json_command
from hermes.undo.history import NOTHING
from hermes.undo.workspace import UndoService

if TYPE_CHECKING:
    from hermes.app.app import App
    from hermes.undo.retention import CheckpointPruneResult

SHARED = ("kept", "lost", "notes")
OTHERS = 5
OTHER = "Another session changed files here: `hermes undo --session {}` undoes {}"

checkpoints_command = CommandGroup(help="Manage checkpoints, the file copies that undo needs.")
with_undo = with_app.part(lambda app: UndoService(app.context))


@checkpoints_command.json("Show the size, the projects and the age of the checkpoints.", with_undo)
async def status(undo: UndoService) -> Output:
    state = await undo.in_thread(lambda history: history.status())

    def lines() -> Iterator[str]:
        copies = plural(state.contents, "file copy", "file copies")
        yield f"{state.folder}: {format_bytes(state.total_bytes)}, {copies}"
        yield f"{plural(state.checkpoints, 'checkpoint')} of {plural(state.sessions, 'session')}"
        if state.oldest_at is not None:
            yield f"the oldest is from {format_time(state.oldest_at)}"
        for project in state.projects:
            yield f"  {project}"

    return Output(state, lines())


@checkpoints_command.json("Delete checkpoints beyond the limits of the settings.", with_undo)
async def prune(undo: UndoService) -> Output:
    return _report(await undo.in_thread(lambda history: history.prune()))


@checkpoints_command.json("Delete all checkpoints that no running session needs.")
@click.option(
    "-f", "--force", "-y", "--yes", "force", is_flag=True, help="Do not ask for confirmation."
)
def clear(ctx: click.Context, force: bool) -> Output:
    question = "Earlier changes cannot be undone after this. Continue?"
    confirm(question, yes=force, otherwise="Nothing was deleted.")
    return _report(with_undo(ctx, lambda undo: undo.in_thread(lambda history: history.clear())))


def _report(done: CheckpointPruneResult) -> Output:
    freed, rest = format_bytes(done.bytes), format_bytes(done.total_bytes)
    return Output(done, f"{plural(done.turns, 'turn')} deleted, {freed} freed, {rest} left.")


@json_command(
    "Undo the file changes of the last turn, or of the last N entries of --list. Your own later "
    "changes stay. An undo is itself an entry, so it can be undone.",
    with_app,
)
@click.argument("number", metavar="[N]", type=click.IntRange(min=1), required=False)
@click.option(
    "--session", metavar="ID", help="Use this session (default: the last in this folder)."
)
@click.option("--to", "turn", metavar="TURN", help="Undo this turn and all after it.")
@click.option("--file", "path", metavar="PATH", help="Restore only this file or folder.")
@click.option("--preview", is_flag=True, help="Show what would happen, without changing anything.")
@click.option("--overwrite", is_flag=True, help="Also restore files that you changed afterwards.")
@click.option("--list", "only_list", is_flag=True, help="List the changes that can be undone.")
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
    undo, here = UndoService(app.context), str(Path.cwd())
    if session:
        session_id = await app.archive.find(session)
    else:
        session_id = await undo.in_thread(lambda history: history.session_of(here))
    if only_list:
        checkpoints = await undo.in_thread(lambda history: history.checkpoints(session_id))
        lines = [line_of(each, time.time()) for each in checkpoints]
        others = await undo.in_thread(lambda history: history.other_sessions(here, session_id))
        rest = [OTHER.format(each.session, one_line(each.words, 60)) for each in others[:OTHERS]]
        return Output(checkpoints, [*(lines or ["This session has changed no files."]), *rest])
    # What a killed Hermes left running would change the files again.
    await end_survivors(app)
    try:
        plan = await undo.in_thread(
            lambda history: history.plan(
                session_id,
                number=number or 0,
                turn=turn or "",
                path=posixpath.normpath(posixpath.join(here, path)) if path else "",
                overwrite=overwrite,
            )
        )
    except NotFound as error:
        others = await undo.in_thread(lambda history: history.other_sessions(here, session_id))
        if str(error) != NOTHING or not others:
            raise
        offer = OTHER.format(others[0].session, one_line(others[0].words, 60))
        raise NotFound(f"This session has nothing to undo. {offer}") from error
    is_partial = False
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
        text, is_partial = result_lines(done, here), done.is_partial
    result = {"session": session_id, "turns": plan.turns, "preview": preview, **data}
    return Output(result, text, code=is_partial)
