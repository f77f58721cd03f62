"""`hermes sessions prune`, `delete`, `optimize`: what goes is said before it goes."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import click

from hermes.app.build import App
from hermes.core.errors import UsageError
from hermes.journal.archive import Pruned, parse_age
from hermes.surfaces.cli.commands.session_filters import chosen, filter_options
from hermes.surfaces.cli.output import as_json_option, columns, print_json, with_app

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


@click.command(help="Remove sessions that were not used for long.")
@click.option(
    "--older-than", metavar="AGE", default="90", show_default=True, help="90 (days), 12h, 2w."
)
@filter_options
@click.option("--archive", is_flag=True, help="Move them to compressed files instead.")
@click.option("--dry-run", is_flag=True, help="Only say which.")
@yes_option
@as_json_option
@click.pass_context
def prune(
    ctx: click.Context,
    /,
    older_than: str,
    archive: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **given: Any,
) -> None:
    age = parse_age(older_than)
    verb = "archived" if archive else "removed"

    async def pruned(app: App, *, dry_run: bool) -> Pruned:
        wanted = chosen(given, app.world.clock.now())
        return await app.library.prune(age, wanted, dry_run=dry_run, archive=archive)

    planned = with_app(ctx, partial(pruned, dry_run=True))
    if dry_run or not planned.removed:
        _report(planned, f"would be {verb}", as_json)
        return
    if not yes:
        confirm(f"{len(planned.removed)} session(s) will be {verb}. Go on?")
    _report(with_app(ctx, partial(pruned, dry_run=False)), verb, as_json)


@click.command(help="Remove one session for ever.")
@click.argument("session")
@yes_option
@as_json_option
@click.pass_context
def delete(ctx: click.Context, session: str, yes: bool, as_json: bool) -> None:
    gone = with_app(ctx, lambda app: app.library.find(session))
    if not yes:
        confirm(f"Remove {gone} for ever?")
    with_app(ctx, lambda app: app.library.delete(gone))
    if as_json:
        print_json({"session_id": gone})
    else:
        print(f"{gone} is removed.")


@click.command(help="Give back the room of deleted sessions; make the search index anew.")
@as_json_option
@click.pass_context
def optimize(ctx: click.Context, as_json: bool) -> None:
    before, after = with_app(ctx, lambda app: app.library.optimize())
    if as_json:
        print_json({"bytes_before": before, "bytes_after": after})
    else:
        print(f"{before / 1e6:.1f} MB became {after / 1e6:.1f} MB; the search index is new.")


def confirm(question: str) -> None:
    """Returns when the person says yes; anything else ends the command. Not for use inside an
    event loop, which would keep Ctrl+C to itself while somebody thinks."""
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Nobody can answer here; add --yes.")
    if not click.confirm(question, err=True):
        click.echo("Nothing was removed.", err=True)
        raise click.exceptions.Exit(1)


def _report(pruned: Pruned, verb: str, as_json: bool) -> None:
    if as_json:
        print_json(columns(pruned))
        return
    for session_id in pruned.removed:
        print(session_id)
    kept = f"; {len(pruned.kept)} kept: in use, or a fork needs them" if pruned.kept else ""
    print(f"{len(pruned.removed)} session(s) {verb}{kept}.")
