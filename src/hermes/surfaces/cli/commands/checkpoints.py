"""`hermes checkpoints`: how much is stored for undo, and pruning it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from hermes.app.build import App
from hermes.surfaces.cli.asking import confirm
from hermes.surfaces.cli.output import Output, format_time, json_output, with_app
from hermes.undo.service import make_undo_service

if TYPE_CHECKING:
    from hermes.undo.history import StoreStatus
    from hermes.undo.upkeep import PruneResult


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
