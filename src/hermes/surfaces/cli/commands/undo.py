"""`hermes undo`: take back what an agent did to files."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hermes.app.build import App
from hermes.codec.values import JsonObject
from hermes.commands.rollback import line_of, previewed, told
from hermes.core.errors import UsageError
from hermes.surfaces.cli.output import as_json_option, columns, print_json, with_app
from hermes.undo.service import undoing

if TYPE_CHECKING:
    from hermes.undo.history import Checkpoint
    from hermes.undo.plan import Plan
    from hermes.undo.restore import Restored


@click.command(
    help="Take back what the last turn did to files; with N, the last N of `--list`. What you have "
    "changed since stays. An undo can be undone: it is number 1 of the list then."
)
@click.argument("number", metavar="[N]", type=click.IntRange(min=1), required=False)
@click.option("--session", metavar="ID", help="Of this session; else the last one in this folder.")
@click.option("--to", "turn", metavar="TURN", help="That turn and all after it.")
@click.option("--file", "path", metavar="PATH", help="Only this file or folder.")
@click.option("--preview", is_flag=True, help="Only say what would happen.")
@click.option("--overwrite", is_flag=True, help="Also what was changed since; it can be undone.")
@click.option("--list", "only_list", is_flag=True, help="List what can be taken back.")
@as_json_option
@click.pass_context
def command(
    ctx: click.Context,
    number: int | None,
    session: str | None,
    turn: str | None,
    path: str | None,
    preview: bool,
    overwrite: bool,
    only_list: bool,
    as_json: bool,
) -> None:
    if number and turn:
        raise UsageError("Give a number or --to TURN, not both.")

    async def work(app: App) -> None:
        undo = undoing(app.run)
        here = str(Path.cwd())
        session_id = await app.library.find(session) if session else await undo.session_of(here)
        if only_list:
            _print_list(await undo.checkpoints(session_id), app, as_json)
            return
        plan = await undo.plan(
            session_id,
            number=number or 0,
            turn=turn or "",
            path=posixpath.normpath(posixpath.join(here, path)) if path else "",
            overwrite=overwrite,
        )
        if preview:
            _print_plan(plan, session_id, here, as_json)
            return
        done = await undo.carry_out(plan, session=session_id, whole=not path)
        _print_done(done, plan, session_id, here, as_json)

    with_app(ctx, work)


def _print_list(listed: tuple[Checkpoint, ...], app: App, as_json: bool) -> None:
    if as_json:
        print_json(columns(listed))
    elif not listed:
        print("This session has changed no files.")
    else:
        for each in listed:
            print(line_of(each, app.world.clock.now()))


def _print_plan(plan: Plan, session_id: str, here: str, as_json: bool) -> None:
    if not as_json:
        print(previewed(plan, here))
        return
    print_json(
        {
            "session": session_id,
            "turns": plan.turns,
            "preview": True,
            "restored": [step.path for step in plan.steps if step.target is not None],
            "deleted": [step.path for step in plan.steps if step.target is None],
            "kept": columns(plan.kept),
            "lost": plan.lost,
            "notes": plan.notes,
        }
    )


def _print_done(done: Restored, plan: Plan, session_id: str, here: str, as_json: bool) -> None:
    if not as_json:
        print(told(done, here))
        return
    facts: JsonObject = {
        "session": session_id,
        "turns": plan.turns,
        "preview": False,
        "restored": done.restored,
        "deleted": done.deleted,
        "kept": columns(done.kept),
        "lost": done.lost,
        "notes": done.notes,
    }
    print_json(facts)
