"""`hermes extras`: lists, adds and removes optional parts of this installation."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click

from hermes.config.extras import EXTRAS, add_command
from hermes.homes.extras import (
    ExtraChange,
    apply_change,
    extra_rows,
    plan_addition,
    plan_removal,
)
from hermes.surfaces.cli.command_context import apply_style, mark, run
from hermes.surfaces.cli.output import (
    CommandGroup,
    Output,
    confirm,
    dry_run_option,
    table,
    yes_option,
)

WIDTHS = (10, 10, 8)


@click.group(
    cls=CommandGroup,
    default="list",
    help="List, add and remove optional parts, in the Python that runs Hermes.",
)
def command() -> None:
    pass


@command.json("List the optional parts with purpose, size and state.")
def list_(ctx: click.Context) -> Output:
    rows = extra_rows()

    def lines() -> Iterator[str]:
        cells = [
            (row.name, "installed" if row.installed else "no", f"{row.megabytes} MB", row.purpose)
            for row in rows
        ]
        yield from table([("extra", "installed", "size", "purpose"), *cells], WIDTHS)
        yield apply_style(f"`{add_command('NAME')}` adds one.", "dim")

    return Output(rows, lines())


@command.text("Install an optional part into the Python that runs Hermes.")
@dry_run_option
def add(ctx: click.Context, name: str, dry_run: bool) -> Iterator[str]:
    change = plan_addition(name)
    size = next(extra.megabytes for extra in EXTRAS if extra.name == name)
    yield f"This runs (about {size} MB): {shlex.join(change.command)}"
    if not dry_run:
        run(apply_change(change))
        yield f"{mark('ok')} The extra {name} is installed."


@command.text("Uninstall the packages of an optional part.")
@dry_run_option
@yes_option
def remove(ctx: click.Context, name: str, dry_run: bool, yes: bool) -> Iterator[str]:
    change = plan_removal(name)
    yield from _removal_lines(change)
    if dry_run or not change.command:
        return
    confirm(f"Remove the extra {name}?", yes=yes)
    run(apply_change(change))
    yield f"{mark('ok')} The extra {name} is removed."


def _removal_lines(change: ExtraChange) -> Iterator[str]:
    if change.kept:
        yield f"Other packages need {', '.join(change.kept)}; they stay."
    if change.command:
        yield f"This runs: {shlex.join(change.command)}"
    elif not change.kept:
        yield f"The extra {change.extra} is not installed."
