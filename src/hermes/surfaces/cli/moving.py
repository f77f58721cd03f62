"""Imports data from another agent: shows the plan, asks, and prints the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import click

from hermes.codec.values import replace
from hermes.homes.moving.foreign import ForeignHome, MigrationItem
from hermes.homes.moving.taking import MigrationOptions, migrate
from hermes.surfaces.cli.asking import confirm
from hermes.surfaces.cli.output import Output, print_output, warn, with_app
from hermes.surfaces.cli.style import mark


def import_foreign(
    ctx: click.Context, foreign: ForeignHome, wish: MigrationOptions, *, yes: bool, as_json: bool
) -> int:
    """The exit code."""
    for problem in foreign.problems:
        warn(problem)
    if wish.dry_run or not yes:
        plan = replace(wish, dry_run=True)
        planned = with_app(
            ctx, lambda app: migrate(app.run, app.memory, app.archive, foreign, plan)
        )
        if wish.dry_run:
            return print_output(_result(planned), as_json=as_json)
        if not as_json:
            print_output(_result(planned), as_json=False)
        wanted = sum(item.state == "would be taken" for item in planned)
        confirm(f"Import {wanted} of these? {foreign.root} stays as it is.")
    done = with_app(ctx, lambda app: migrate(app.run, app.memory, app.archive, foreign, wish))
    return print_output(_result(done), as_json=as_json)


def _result(items: tuple[MigrationItem, ...]) -> Output:
    return Output(items, _lines(items))


def _lines(items: tuple[MigrationItem, ...]) -> Iterator[str]:
    for item in items:
        sign = mark("warn") if item.state == "left out" else mark("ok")
        note = f" ({item.note})" if item.note else ""
        yield f"{sign} {item.kind:<9} {item.name}: {item.state}{note}"
    counts = Counter(item.state for item in items)
    yield "; ".join(f"{count} {state}" for state, count in counts.items()) or "Nothing was found."
