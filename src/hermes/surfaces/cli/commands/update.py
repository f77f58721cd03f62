"""`hermes update`: check for a newer version and install it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click

from hermes.config.load import Config
from hermes.homes.backup import back_up, snapshot
from hermes.homes.updating import (
    UpdateNotice,
    check_for_update,
    installation,
    migrate_settings,
    update,
)
from hermes.surfaces.cli.asking import confirm, yes_option
from hermes.surfaces.cli.interruptible import run
from hermes.surfaces.cli.output import Output, as_json_option, print_output
from hermes.surfaces.cli.place import config_of
from hermes.surfaces.cli.style import mark

MOST = 10


@click.command(help="Update Hermes to the newest version; asks first and makes a backup.")
@click.option("--check", is_flag=True, help="Only check for a newer version.")
@yes_option
@click.option(
    "--backup/--no-backup", default=None, help="Back up first (updates.pre_update_backup)."
)
@as_json_option
@click.pass_context
def update_command(
    ctx: click.Context, check: bool, yes: bool, backup: bool | None, as_json: bool
) -> None:
    here = installation()
    found = run(check_for_update(here))
    data = {"current": found.current, "newest": found.newest, "new": found.is_new}
    changes = list(found.changes)
    print_output(Output({**data, "changes": changes}, _news_lines(found)), as_json=as_json)
    if check or not found.is_new:
        return
    if not yes:
        confirm(f"Update {here.place} to {found.newest}?")
    config = config_of(ctx)
    if made := _back_up(config, wanted=backup):
        click.echo(f"{mark('ok')} The home is backed up in {made}.", err=as_json)
    run(update(here))
    run(migrate_settings())
    click.echo(f"{mark('ok')} Updated; the next start of `hermes` uses it.", err=as_json)


def _news_lines(found: UpdateNotice) -> Iterator[str]:
    if not found.is_new:
        yield f"{mark('ok')} This is the newest version ({found.current})."
        return
    yield f"{found.newest} is available; this is {found.current}."
    for line in found.changes[:MOST]:
        yield f"  {line}"
    if len(found.changes) > MOST:
        yield f"  … and {len(found.changes) - MOST} more"


def _back_up(config: Config, *, wanted: bool | None) -> str:
    """The file, or "" when there is no home or no backup is wanted."""
    settings = config.settings.updates
    how = settings.pre_update_backup if wanted is None else "full" if wanted else "off"
    if how == "off" or not config.home.root.is_dir():
        return ""
    if how == "full":
        return back_up(config.home, time.time(), label="before-update").file
    keep = settings.backup_keep
    return snapshot(config.home, time.time(), label="before-update", keep=keep).file
