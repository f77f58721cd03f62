"""`hermes uninstall`: show what is removed, then remove it."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from hermes.config.home import Home, profile_home, root_home, unwritable_error
from hermes.core.errors import ConfigError
from hermes.homes.backup import refuse_if_used
from hermes.homes.profiles import Profiles
from hermes.homes.updating import installation, remove_package
from hermes.surfaces.cli.asking import confirm_by_name, yes_option
from hermes.surfaces.cli.interruptible import run
from hermes.surfaces.cli.place import home_of
from hermes.surfaces.cli.style import mark


@click.command(help="Remove Hermes. The home with settings, memory and sessions stays.")
@click.option("--full", is_flag=True, help="Also the home with all profiles, permanently.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@yes_option
@click.pass_context
def uninstall_command(ctx: click.Context, full: bool, dry_run: bool, yes: bool) -> None:
    home, here = root_home(home_of(ctx)), installation()
    goes = full and home.root.is_dir()
    if here.kind == "package":
        print(f"The package is removed from {here.place}.")
    else:
        print(f"This is a checkout; remove the folder {here.place} yourself.")
    print(f"{home.root} {'is deleted with everything in it' if goes else 'stays'}.")
    if dry_run or (here.kind == "checkout" and not goes):
        return
    if goes:
        _check(home)
    if not yes:
        confirm_by_name("This cannot be undone.", "uninstall")
    if goes:
        _remove(home)
    if here.kind == "package":
        run(remove_package(here))
    print(f"{mark('ok')} Removed.")


def _check(home: Home) -> None:
    """Refuse a folder that is not a home, so that a wrong HERMES_HOME does no harm."""
    signs = (home.config, home.journal, home.env_file, home.memories, home.soul)
    if home.root in (Path.home(), Path("/")) or not any(path.exists() for path in signs):
        raise ConfigError(
            f"{home.root} does not look like a Hermes home; remove it yourself if it is one."
        )
    for name in Profiles(home).names():
        refuse_if_used(profile_home(home, name))


def _remove(home: Home) -> None:
    try:
        shutil.rmtree(home.root)
    except OSError as error:
        raise unwritable_error(home.root, error) from error
