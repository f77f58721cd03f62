"""`hermes claw`: migrate from OpenClaw."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import cast

import click

from hermes.codec.values import replace
from hermes.config.secrets import process_environment
from hermes.core.errors import NotFound, UsageError
from hermes.homes.moving.openclaw import read_openclaw
from hermes.homes.moving.taking import MigrationOptions, SkillConflict
from hermes.surfaces.cli.asking import confirm, yes_option
from hermes.surfaces.cli.moving import import_foreign
from hermes.surfaces.cli.output import Output, as_json_option, json_output

CONFLICTS = ("skip", "overwrite", "rename")


@click.group(help="Migrate from OpenClaw; its own files are not changed.")
def claw_command() -> None:
    pass


@claw_command.command(help="Import its identity, memory, skills and model. FOLDER is ~/.openclaw.")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option(
    "--preset",
    type=click.Choice(["user-data", "full"]),
    default="full",
    help="user-data: without settings and keys.",
)
@click.option("--overwrite", is_flag=True, help="Replace what exists already.")
@click.option("--migrate-secrets", is_flag=True, help="Include keys.")
@click.option("--skill-conflict", type=click.Choice(CONFLICTS), default="skip")
@yes_option
@as_json_option
@click.pass_context
def migrate(
    ctx: click.Context,
    folder: Path | None,
    dry_run: bool,
    preset: str,
    overwrite: bool,
    migrate_secrets: bool,
    skill_conflict: str,
    yes: bool,
    as_json: bool,
) -> int:
    full = preset == "full"
    if migrate_secrets and not full:
        raise UsageError("--preset user-data imports no keys; leave out --migrate-secrets.")
    found = read_openclaw(_root(folder))
    wish = MigrationOptions(
        secrets=migrate_secrets,
        settings=full,
        overwrite=overwrite,
        skill_conflict=cast(SkillConflict, skill_conflict),
        dry_run=dry_run,
    )
    foreign = found if full else replace(found, secrets={})
    return import_foreign(ctx, foreign, wish, yes=yes, as_json=as_json)


@claw_command.command(help="Rename its folder after the migration, so that nothing uses it.")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@yes_option
@json_output()
def cleanup(ctx: click.Context, folder: Path | None, dry_run: bool, yes: bool) -> Output:
    root = _root(folder)
    if not root.is_dir():
        raise NotFound(f"There is no folder {root}; name the one that OpenClaw used.")
    target = _free_name(root)
    if not dry_run:
        if not yes:
            confirm(f"Rename {root} to {target.name}? OpenClaw will no longer find it.")
        root.rename(target)
    verb = "would be" if dry_run else "is now"
    data = {"from": str(root), "to": str(target), "done": not dry_run}
    return Output(data, f"{root} {verb} {target}.")


def _root(folder: Path | None) -> Path:
    given = folder or Path(process_environment().get("HOME", "~")).expanduser() / ".openclaw"
    return given.absolute()


def _free_name(root: Path) -> Path:
    names = (f"{root.name}.moved-in{number or ''}" for number in count())
    return next(path for name in names if not (path := root.with_name(name)).exists())
