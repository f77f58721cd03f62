"""`hermes checkpoints`: how much is kept for undo, and throwing it away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hermes.app.build import App
from hermes.surfaces.cli.commands.sessions_removal import confirm
from hermes.surfaces.cli.output import as_json_option, columns, moment, print_json, with_app
from hermes.undo.service import undoing

if TYPE_CHECKING:
    from hermes.undo.history import Status
    from hermes.undo.upkeep import Pruned


@click.group(help="What is kept so that changes of files can be taken back.")
def command() -> None:
    pass


@command.command(help="How much is kept, of which projects, since when.")
@as_json_option
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    async def work(app: App) -> Status:
        return await undoing(app.run).status()

    found = with_app(ctx, work)
    if as_json:
        print_json(columns(found))
        return
    print(f"{found.folder}: {_megabytes(found.total_bytes)}, {found.contents} contents")
    print(f"{found.checkpoints} checkpoints of {found.sessions} sessions")
    if found.oldest_at is not None:
        print(f"the oldest of {moment(found.oldest_at)}")
    for project in found.projects:
        print(f"  {project}")


@command.command(help="Throw away what is too old or too much by the settings.")
@as_json_option
@click.pass_context
def prune(ctx: click.Context, as_json: bool) -> None:
    async def work(app: App) -> Pruned:
        return await undoing(app.run).prune()

    _report(with_app(ctx, work), as_json)


@command.command(help="Throw away everything that no running session needs.")
@click.option("-f", "--force", "-y", "--yes", "force", is_flag=True, help="Do not ask.")
@as_json_option
@click.pass_context
def clear(ctx: click.Context, force: bool, as_json: bool) -> None:
    async def work(app: App) -> Pruned:
        return await undoing(app.run).clear()

    if not force:
        confirm("Nothing that was done so far can be undone then. Go on?")
    _report(with_app(ctx, work), as_json)


def _report(done: Pruned, as_json: bool) -> None:
    if as_json:
        print_json(columns(done))
    else:
        freed, rest = _megabytes(done.bytes), _megabytes(done.total_bytes)
        print(f"{done.turns} turns went, {freed} freed; {rest} stay.")


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"
