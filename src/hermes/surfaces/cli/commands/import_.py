"""`hermes import`: a backup taken out again, or a home of Hermes Agent moved in."""

from __future__ import annotations

import time
from pathlib import Path

import click

from hermes.config.secrets import environment
from hermes.core.errors import UsageError
from hermes.homes.backup import beside_in, looked_into, restore
from hermes.homes.moving.taking import Wish
from hermes.homes.outside_files import PersonsFiles
from hermes.surfaces.cli.asking import confirm
from hermes.surfaces.cli.moving import move_in
from hermes.surfaces.cli.output import as_json_option, columns, print_json
from hermes.surfaces.cli.place import home_of
from hermes.surfaces.cli.style import mark

HERMES_AGENT = "hermes-agent"
MOST_SHOWN = 5


@click.command(
    help="Restore a backup (`hermes import FILE.zip`), or move in from Hermes Agent "
    "(`hermes import hermes-agent [FOLDER]`, which is only read)."
)
@click.argument("what", metavar="FILE|hermes-agent")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--overwrite", is_flag=True, help="With hermes-agent: also what is there already.")
@click.option("--secrets", is_flag=True, help="With hermes-agent: keys too.")
@click.option("--external", is_flag=True, help="With FILE: files beside the home, too.")
@click.option("-y", "-f", "--yes", "--force", "yes", is_flag=True, help="Do not ask.")
@as_json_option
@click.pass_context
def command(
    ctx: click.Context,
    what: str,
    folder: Path | None,
    dry_run: bool,
    overwrite: bool,
    secrets: bool,
    external: bool,
    yes: bool,
    as_json: bool,
) -> None:
    if what == HERMES_AGENT:
        # It reads settings of others, for which the YAML library is needed.
        from hermes.homes.moving.hermes_agent import read_hermes_agent

        root = folder or Path(environment().get("HOME", "~")).expanduser() / ".hermes"
        wish = Wish(secrets=secrets, overwrite=overwrite, dry_run=dry_run)
        move_in(ctx, read_hermes_agent(root.absolute()), wish, yes=yes, as_json=as_json)
        return
    if folder is not None or overwrite or secrets:
        raise UsageError(f"A folder, --overwrite and --secrets belong to `{HERMES_AGENT}`.")
    _restore(ctx, Path(what), dry_run=dry_run, external=external, yes=yes, as_json=as_json)


def _restore(
    ctx: click.Context, file: Path, *, dry_run: bool, external: bool, yes: bool, as_json: bool
) -> None:
    home = home_of(ctx)
    names, others = looked_into(file), beside_in(file)
    there = sum((home.root / name).exists() for name in names)
    words = f"{file} holds {len(names)} files, of which {there} would replace those in {home.root}"
    if dry_run:
        if as_json:
            print_json({"files": len(names), "replaces": there, "external": others})
        else:
            print(f"{words}.")
            _tell_beside(others)
        return
    if not yes:
        if external:
            _tell_beside(others)
        confirm(f"{words}. Go on?")
    beside = PersonsFiles(Path.home(), home) if external else None
    done = restore(home, file, time.time(), beside)
    if as_json:
        print_json(columns(done))
        return
    print(f"{mark('ok')} {done.added} files added and {done.replaced} replaced in {home.root}.")
    if done.before:
        print(f"  What they held before is in {done.before}.")
    if external:
        print(f"  {len(done.outside)} files are back beside the home.")
    elif others:
        _tell_beside(others)


def _tell_beside(names: tuple[str, ...]) -> None:
    if names:
        shown = ", ".join(f"~/{name}" for name in names[:MOST_SHOWN])
        more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
        print(f"  It also has {shown}{more}; `--external` puts them back.")
