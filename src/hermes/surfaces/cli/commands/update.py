"""`hermes update`: what is newer, and to get there when the person says so."""

from __future__ import annotations

import time

import click

from hermes.config.load import Config
from hermes.homes.backup import back_up, snapshot
from hermes.homes.updating import News, installation, migrate_settings, news, update
from hermes.surfaces.cli.asking import confirm
from hermes.surfaces.cli.interruptible import run
from hermes.surfaces.cli.output import as_json_option, print_json
from hermes.surfaces.cli.place import config_of
from hermes.surfaces.cli.style import mark

MOST = 10


@click.command(help="Bring Hermes to its newest version; asks first, and backs up before.")
@click.option("--check", is_flag=True, help="Only say whether there is something new.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--backup/--no-backup", default=None, help="Back up first (updates.pre_update_backup)."
)
@as_json_option
@click.pass_context
def command(ctx: click.Context, check: bool, yes: bool, backup: bool | None, as_json: bool) -> None:
    here = installation()
    found = run(news(here))
    if as_json:
        print_json(
            {
                "current": found.current,
                "newest": found.newest,
                "new": found.is_new,
                "changes": list(found.changes),
            }
        )
    else:
        _print(found)
    if check or not found.is_new:
        return
    if not yes:
        confirm(f"Update {here.place} to {found.newest}?")
    config = config_of(ctx)
    if made := _backed_up(config, wanted=backup):
        click.echo(f"{mark('ok')} The home is backed up in {made}.", err=as_json)
    run(update(here))
    run(migrate_settings())
    click.echo(f"{mark('ok')} Updated; the next `hermes` is the new one.", err=as_json)


def _print(found: News) -> None:
    if not found.is_new:
        print(f"{mark('ok')} This is the newest ({found.current}).")
        return
    print(f"{found.newest} is there; this is {found.current}.")
    for line in found.changes[:MOST]:
        print(f"  {line}")
    if len(found.changes) > MOST:
        print(f"  … and {len(found.changes) - MOST} more")


def _backed_up(config: Config, *, wanted: bool | None) -> str:
    """Where, or "" when there is nothing or it is not wanted."""
    settings = config.settings.updates
    how = settings.pre_update_backup if wanted is None else "full" if wanted else "off"
    if how == "off" or not config.home.root.is_dir():
        return ""
    if how == "full":
        return back_up(config.home, time.time(), label="before-update").file
    keep = settings.backup_keep
    return snapshot(config.home, time.time(), label="before-update", keep=keep).file
