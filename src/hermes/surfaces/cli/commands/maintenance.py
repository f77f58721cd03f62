"""`hermes backup`, `update` and `uninstall`."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import click

from hermes.app.app import App
from hermes.config.home import Home, profile_home, root_home, unwritable_error
from hermes.config.load import Config
from hermes.core.errors import ConfigError, HermesError, UsageError
from hermes.homes.archive_files import OutsideFile, UserFiles, provider_paths
from hermes.homes.backup import Backup, back_up, refuse_if_used, snapshot
from hermes.homes.installation import (
    UpdateNotice,
    check_for_update,
    installation,
    migrate_settings,
    remove_package,
    update,
)
from hermes.homes.profiles import Profiles
from hermes.surfaces.cli.command_context import config_of, home_of, mark, run
from hermes.surfaces.cli.output import (
    Output,
    as_json_option,
    confirm,
    confirm_by_name,
    json_output,
    print_output,
    with_app,
    yes_option,
)


@click.command(help="Write this home to one zip file; `hermes import FILE` restores it.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file to write.")
@click.option("-q", "--quick", is_flag=True, help="Only settings, keys and sessions.")
@click.option("-l", "--label", default="", help="A word to add to the file name.")
@json_output()
def backup_command(ctx: click.Context, output: Path | None, quick: bool, label: str) -> Output:
    if quick and output is not None:
        raise UsageError("A quick backup stays in the home; leave out --output or --quick.")
    home, now = home_of(ctx), time.time()
    outside = OutsideFile() if quick else _outside(ctx)
    if quick:
        made = snapshot(home, now, label=label)
    else:
        files = {name: Path.home() / name for name in outside.files}
        made = back_up(home, now, to=output, label=label, beside=files)
    data = {"file": made.file, "files": made.files, "bytes": made.bytes, "outside": outside}
    return Output(data, _lines(made, outside))


def _lines(made: Backup, outside: OutsideFile) -> Iterator[str]:
    size = f"{made.bytes / 1e6:.1f} MB" if made.bytes >= 1e5 else f"{made.bytes:,} bytes"
    yield f"{mark('ok')} {made.files} files ({size}) are in {made.file}."
    if outside.files:
        yield f"  {len(outside.files)} of them belong to your memory provider, outside the home."
    for words in outside.left_out:
        yield f"{mark('warn')} not included: {words}"
    yield "It contains your keys and all conversations: keep it where only you can read it."


def _outside(ctx: click.Context) -> OutsideFile:
    """Broken settings or plugins do not prevent the backup of the rest."""

    async def work(app: App) -> OutsideFile:
        paths = await provider_paths(app.memory)
        return UserFiles(Path(app.run.user_home), app.run.home).outside(paths)

    try:
        if not config_of(ctx).settings.memory.provider:
            return OutsideFile()
        return with_app(ctx, work)
    except HermesError as error:
        return OutsideFile(left_out=(f"what the memory provider stores elsewhere ({error})",))


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
        confirm(f"Update {here.path} to {found.newest}?")
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


@click.command(help="Remove Hermes. The home with settings, memory and sessions stays.")
@click.option("--full", is_flag=True, help="Also the home with all profiles, permanently.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@yes_option
@click.pass_context
def uninstall_command(ctx: click.Context, full: bool, dry_run: bool, yes: bool) -> None:
    home, here = root_home(home_of(ctx)), installation()
    goes = full and home.root.is_dir()
    if here.kind == "package":
        print(f"The package is removed from {here.path}.")
    else:
        print(f"This is a checkout; remove the folder {here.path} yourself.")
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
