"""`hermes undo`: undo file changes of the agent."""

from __future__ import annotations

import posixpath
from pathlib import Path

import click

from hermes.app.build import App
from hermes.commands.rollback import line_of, preview_lines, result_lines
from hermes.core.errors import UsageError
from hermes.surfaces.cli.output import Output, json_output, with_app
from hermes.undo.service import make_undo_service

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
        now = app.world.clock.now()
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
