"""`hermes sessions prune`, `delete` and `optimize`: remove sessions and free their space."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from hermes.app.build import App
from hermes.journal.archive import PruneResult, parse_age
from hermes.surfaces.cli.asking import confirm, yes_option
from hermes.surfaces.cli.commands.session_filters import filter_options, parse_filter
from hermes.surfaces.cli.output import Output, json_output, with_app

UNCHANGED = "Nothing was removed."


@click.command(help="Remove sessions that were not used for some time.")
@click.option(
    "--older-than", metavar="AGE", default="90", show_default=True, help="90 (days), 12h, 2w."
)
@filter_options
@click.option("--archive", is_flag=True, help="Move them to compressed files instead.")
@click.option("--dry-run", is_flag=True, help="Only list them.")
@yes_option
@json_output()
def prune(
    ctx: click.Context, /, older_than: str, archive: bool, dry_run: bool, yes: bool, **given: Any
) -> Output:
    age = parse_age(older_than)
    verb = "archived" if archive else "removed"

    async def run(app: App, *, dry_run: bool) -> PruneResult:
        wanted = parse_filter(given, app.world.clock.now())
        return await app.archive.prune(age, wanted, dry_run=dry_run, archive=archive)

    planned = with_app(ctx, partial(run, dry_run=True))
    if dry_run or not planned.removed:
        return _prune_output(planned, f"would be {verb}")
    if not yes:
        question = f"{len(planned.removed)} session(s) will be {verb}. Go on?"
        confirm(question, otherwise=UNCHANGED)
    return _prune_output(with_app(ctx, partial(run, dry_run=False)), verb)


def _prune_output(pruned: PruneResult, verb: str) -> Output:
    kept = f"; {len(pruned.kept)} kept: in use, or a fork needs them" if pruned.kept else ""
    total = f"{len(pruned.removed)} session(s) {verb}{kept}."
    return Output(pruned, [*pruned.removed, total])


@click.command(help="Remove one session permanently.")
@click.argument("session")
@yes_option
@json_output()
def delete(ctx: click.Context, session: str, yes: bool) -> Output:
    session_id = with_app(ctx, lambda app: app.archive.find(session))
    if not yes:
        confirm(f"Remove {session_id} permanently?", otherwise=UNCHANGED)
    with_app(ctx, lambda app: app.archive.delete(session_id))
    return Output({"session_id": session_id}, f"{session_id} is removed.")


@click.command(help="Free the space of deleted sessions and rebuild the search index.")
@json_output(with_app)
async def optimize(app: App) -> Output:
    before, after = await app.archive.optimize()
    sizes = f"{before / 1e6:.1f} MB became {after / 1e6:.1f} MB"
    data = {"bytes_before": before, "bytes_after": after}
    return Output(data, f"{sizes}; the search index was rebuilt.")
