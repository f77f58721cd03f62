"""`hermes backup`, `update` and `uninstall`."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import click

from hermes.commands.formatting import format_bytes
from hermes.config.home import Home, profile_home, root_home, unwritable_error
from hermes.core.errors import ConfigError, HermesError, UsageError
from hermes.homes.archive_files import OutsideFile, UserFiles, provider_paths
from hermes.homes.backup import back_up, refuse_if_used, snapshot
from hermes.homes.installation import (
    check_for_update,
    installation,
    migrate_settings,
    remove_package,
    update,
)
from hermes.homes.profiles import Profiles
from hermes.memory.service import MemoryService
from hermes.surfaces.cli.command_context import config_of, home_of, mark, run, with_app
from hermes.surfaces.cli.output import (
    Output,
    confirm,
    confirm_by_name,
    dry_run_option,
    json_command,
    print_output,
    text_command,
    yes_option,
)

MOST_CHANGES = 10


@json_command("Back up this home to a zip file; `hermes import FILE` restores it.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the backup here.")
@click.option("-q", "--quick", is_flag=True, help="Back up only settings, keys and sessions.")
@click.option("-l", "--label", default="", help="Add this word to the file name.")
def backup_command(ctx: click.Context, output: Path | None, quick: bool, label: str) -> Output:
    if quick and output is not None:
        raise UsageError("Give --output or --quick, not both; a quick backup stays in the home.")
    home, now = home_of(ctx), time.time()
    outside = OutsideFile() if quick else _outside(ctx)
    if quick:
        made = snapshot(home, now, label=label)
    else:
        files = {name: Path.home() / name for name in outside.files}
        made = back_up(home, now, to=output, label=label, beside=files)
    data = {"file": made.file, "files": made.files, "bytes": made.bytes, "outside": outside}

    def lines() -> Iterator[str]:
        yield f"{mark('ok')} {made.files} files ({format_bytes(made.bytes)}) are in {made.file}."
        if outside.files:
            count = len(outside.files)
            yield f"  {count} of them belong to your memory provider, outside the home."
        for description in outside.left_out:
            yield f"{mark('warn')} not included: {description}"
        yield "It contains your keys and conversations; keep it where only you can read it."

    return Output(data, lines())


def _outside(ctx: click.Context) -> OutsideFile:
    """Broken settings or plugins do not prevent the backup of the rest."""

    async def find(memory: MemoryService) -> OutsideFile:
        paths = await provider_paths(memory)
        return UserFiles(Path(memory.run.user_home), memory.run.home).outside(paths)

    try:
        if not config_of(ctx).settings.memory.provider:
            return OutsideFile()
        return with_app(ctx, lambda app: find(app.memory))
    except HermesError as error:
        return OutsideFile(left_out=(f"what the memory provider stores elsewhere ({error})",))


@json_command("Update Hermes to the newest version, after a confirmation and a backup.")
@click.option("--check", is_flag=True, help="Only check for a newer version.")
@yes_option
@click.option("--backup/--no-backup", default=None, help="Override updates.pre_update_backup.")
def update_command(
    ctx: click.Context, check: bool, yes: bool, backup: bool | None, as_json: bool
) -> None:
    here = installation()
    found = run(check_for_update(here))
    changes = found.changes
    lines = [f"{mark('ok')} This is the newest version ({found.current})."]
    if found.is_new:
        lines = [f"{found.newest} is available; this is {found.current}."]
        lines += [f"  {line}" for line in changes[:MOST_CHANGES]]
        lines += [f"  … and {len(changes) - MOST_CHANGES} more"] * (len(changes) > MOST_CHANGES)
    data = {"current": found.current, "newest": found.newest, "new": found.is_new}
    print_output(Output({**data, "changes": list(changes)}, lines), as_json=as_json)
    if check or not found.is_new:
        return
    confirm(f"Update {here.path} to {found.newest}?", yes=yes)
    home, settings = home_of(ctx), config_of(ctx).settings.updates
    how = settings.pre_update_backup if backup is None else "full" if backup else "off"
    if how != "off" and home.root.is_dir():
        if how == "full":
            made = back_up(home, time.time(), label="before-update")
        else:
            keep = settings.backup_keep
            made = snapshot(home, time.time(), label="before-update", keep=keep)
        click.echo(f"{mark('ok')} The home is backed up in {made.file}.", err=as_json)
    run(update(here))
    run(migrate_settings())
    click.echo(f"{mark('ok')} Updated; the next start of `hermes` uses it.", err=as_json)


@text_command("Remove Hermes; settings, memory and sessions stay in the home.")
@click.option("--full", is_flag=True, help="Also delete the home with all profiles, permanently.")
@dry_run_option
@yes_option
def uninstall_command(ctx: click.Context, full: bool, dry_run: bool, yes: bool) -> None:
    home, here = root_home(home_of(ctx)), installation()
    goes = full and home.root.is_dir()
    if here.kind == "package":
        print(f"This removes the package from {here.path}.")
    else:
        print(f"Hermes runs from a checkout; delete the folder {here.path} yourself.")
    print(f"This deletes {home.root} with everything in it." if goes else f"{home.root} stays.")
    if dry_run or (here.kind == "checkout" and not goes):
        return
    if goes:
        _check(home)
    confirm_by_name("This cannot be undone.", "uninstall", yes=yes)
    if goes:
        try:
            shutil.rmtree(home.root)
        except OSError as error:
            raise unwritable_error(home.root, error) from error
    if here.kind == "package":
        run(remove_package(here))
    print(f"{mark('ok')} Hermes is removed.")


def _check(home: Home) -> None:
    """Refuse a folder that is not a home, so that a wrong HERMES_HOME does no harm."""
    signs = (home.config, home.journal, home.env_file, home.memories, home.soul)
    if home.root in (Path.home(), Path("/")) or not any(path.exists() for path in signs):
        raise ConfigError(
            f"{home.root} does not look like a Hermes home; if it is one, delete it yourself."
        )
    for name in Profiles(home).names():
        refuse_if_used(profile_home(home, name))
