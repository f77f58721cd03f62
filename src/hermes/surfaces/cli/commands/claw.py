"""`hermes claw`: move in from OpenClaw."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import cast

import click

from hermes.codec.values import replace
from hermes.config.secrets import environment
from hermes.core.errors import NotFound, UsageError
from hermes.homes.moving.openclaw import read_openclaw
from hermes.homes.moving.taking import SkillConflict, Wish
from hermes.surfaces.cli.asking import confirm
from hermes.surfaces.cli.moving import move_in
from hermes.surfaces.cli.output import as_json_option, print_json

CONFLICTS = ("skip", "overwrite", "rename")


@click.group(help="Move in from OpenClaw; what it wrote is only read.")
def command() -> None:
    pass


@command.command(help="Take in its identity, memory, skills and model; FOLDER is ~/.openclaw.")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option(
    "--preset",
    type=click.Choice(["user-data", "full"]),
    default="full",
    help="user-data: without settings and keys.",
)
@click.option("--overwrite", is_flag=True, help="Also what is there already.")
@click.option("--migrate-secrets", is_flag=True, help="Keys too.")
@click.option("--skill-conflict", type=click.Choice(CONFLICTS), default="skip")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
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
) -> None:
    full = preset == "full"
    if migrate_secrets and not full:
        raise UsageError("--preset user-data takes no keys; leave out --migrate-secrets.")
    found = read_openclaw(_root(folder))
    wish = Wish(
        secrets=migrate_secrets,
        settings=full,
        overwrite=overwrite,
        skill_conflict=cast(SkillConflict, skill_conflict),
        dry_run=dry_run,
    )
    foreign = found if full else replace(found, secrets={})
    move_in(ctx, foreign, wish, yes=yes, as_json=as_json)


@command.command(help="Rename its folder once you have moved in, so that nothing uses it.")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@as_json_option
def cleanup(folder: Path | None, dry_run: bool, yes: bool, as_json: bool) -> None:
    root = _root(folder)
    if not root.is_dir():
        raise NotFound(f"There is no folder {root}; name the one that OpenClaw used.")
    target = _free(root)
    if not dry_run:
        if not yes:
            confirm(f"Rename {root} to {target.name}? OpenClaw will not find it any more.")
        root.rename(target)
    if as_json:
        print_json({"from": str(root), "to": str(target), "done": not dry_run})
    else:
        print(f"{root} {'would be' if dry_run else 'is now'} {target}.")


def _root(folder: Path | None) -> Path:
    given = folder or Path(environment().get("HOME", "~")).expanduser() / ".openclaw"
    return given.absolute()


def _free(root: Path) -> Path:
    """A name beside it that nothing has."""
    names = (f"{root.name}.moved-in{number or ''}" for number in count())
    return next(place for name in names if not (place := root.with_name(name)).exists())
