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
from hermes.homes.installation import installation
from hermes.homes.profiles import Profiles
from hermes.homes.updating import (
    UpdatePlan,
    check_for_update,
    migrate_settings,
    remove_package,
    update,
)
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


@json_command("Update Hermes from where it was installed, after a confirmation and a backup.")
@click.option("--check", is_flag=True, help="Only show what an update would do.")
@yes_option
@click.option("--backup/--no-backup", default=None, help="Override updates.pre_update_backup.")
def update_command(
    ctx: click.Context, check: bool, yes: bool, backup: bool | None, as_json: bool
) -> None:
    here = installation()
    plan = run(check_for_update(here))
    data = {
        "current": plan.current,
        "newest": plan.newest,
        "new": plan.is_new,
        "changes": list(plan.changes),
        "source": plan.source,
        "steps": plan.step_lines() if plan.is_new else [],
    }
    print_output(Output(data, _plan_lines(plan)), as_json=as_json)
    if check or not plan.is_new:
        return
    confirm(f"Update {here.path} to {plan.newest}?", yes=yes)
    _back_up_before_update(ctx, backup, as_json=as_json)
    run(update(here, plan))
    run(migrate_settings(here))
    click.echo(f"{mark('ok')} Updated; the next start of `hermes` uses it.", err=as_json)


def _plan_lines(plan: UpdatePlan) -> Iterator[str]:
    if not plan.is_new:
        yield f"{mark('ok')} This is the newest version ({plan.current}) of {plan.source}."
        return
    yield f"{plan.newest} is available from {plan.source}; this is {plan.current}."
    yield from (f"  {line}" for line in plan.changes[:MOST_CHANGES])
    if len(plan.changes) > MOST_CHANGES:
        yield f"  … and {len(plan.changes) - MOST_CHANGES} more"
    yield "The update runs:"
    yield from (f"  {line}" for line in plan.step_lines())


def _back_up_before_update(ctx: click.Context, backup: bool | None, *, as_json: bool) -> None:
    home, settings = home_of(ctx), config_of(ctx).settings.updates
    how = settings.pre_update_backup if backup is None else "full" if backup else "off"
    if how == "off" or not home.root.is_dir():
        return
    if how == "full":
        made = back_up(home, time.time(), label="before-update")
    else:
        made = snapshot(home, time.time(), label="before-update", keep=settings.backup_keep)
    click.echo(f"{mark('ok')} The home is backed up in {made.file}.", err=as_json)


@text_command("Remove Hermes; settings, memory and sessions stay in the home.")
@click.option("--full", is_flag=True, help="Also delete the home with all profiles, permanently.")
@dry_run_option
@yes_option
def uninstall_command(ctx: click.Context, full: bool, dry_run: bool, yes: bool) -> None:
    home, here = root_home(home_of(ctx)), installation()
    goes = full and home.root.is_dir()
    if here.is_package:
        print(f"This removes the package from {here.path}.")
    else:
        print(f"Hermes runs from a folder; delete {here.path} yourself.")
    print(f"This deletes {home.root} with everything in it." if goes else f"{home.root} stays.")
    if dry_run or not (here.is_package or goes):
        return
    if goes:
        _check(home)
    confirm_by_name("This cannot be undone.", "uninstall", yes=yes)
    if goes:
        try:
            shutil.rmtree(home.root)
        except OSError as error:
            raise unwritable_error(home.root, error) from error
    if here.is_package:
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
