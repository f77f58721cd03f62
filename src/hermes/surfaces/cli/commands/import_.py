"""`hermes import`: restore a backup, or migrate from Hermes Agent."""

from __future__ import annotations

import time
from pathlib import Path

import click

from hermes.config.home import Home
from hermes.config.secrets import process_environment
from hermes.core.errors import UsageError
from hermes.homes.backup import inspect, outside_files_in, restore
from hermes.homes.moving.taking import MigrationOptions
from hermes.homes.outside_files import UserFiles
from hermes.surfaces.cli.asking import confirm
from hermes.surfaces.cli.moving import import_foreign
from hermes.surfaces.cli.output import Output, as_json_option, print_output
from hermes.surfaces.cli.place import home_of
from hermes.surfaces.cli.style import mark

HERMES_AGENT = "hermes-agent"
MOST_SHOWN = 5


@click.command(
    help="Restore a backup (`hermes import FILE.zip`), or migrate from Hermes Agent "
    "(`hermes import hermes-agent [FOLDER]`; its files are not changed)."
)
@click.argument("what", metavar="FILE|hermes-agent")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--overwrite", is_flag=True, help="With hermes-agent: replace what exists.")
@click.option("--secrets", is_flag=True, help="With hermes-agent: include keys.")
@click.option("--external", is_flag=True, help="With FILE: also files outside the home.")
@click.option("-y", "-f", "--yes", "--force", "yes", is_flag=True, help="Do not ask.")
@as_json_option
@click.pass_context
def import_command(
    ctx: click.Context,
    what: str,
    folder: Path | None,
    dry_run: bool,
    overwrite: bool,
    secrets: bool,
    external: bool,
    yes: bool,
    as_json: bool,
) -> int:
    if what == HERMES_AGENT:
        # Reading foreign settings needs the YAML library, which is slow to load.
        from hermes.homes.moving.hermes_agent import read_hermes_agent

        root = folder or Path(process_environment().get("HOME", "~")).expanduser() / ".hermes"
        wish = MigrationOptions(secrets=secrets, overwrite=overwrite, dry_run=dry_run)
        foreign = read_hermes_agent(root.absolute())
        return import_foreign(ctx, foreign, wish, yes=yes, as_json=as_json)
    if folder is not None or overwrite or secrets:
        raise UsageError(f"A folder, --overwrite and --secrets belong to `{HERMES_AGENT}`.")
    done = _restore(home_of(ctx), Path(what), dry_run=dry_run, external=external, yes=yes)
    return print_output(done, as_json=as_json)


def _restore(home: Home, file: Path, *, dry_run: bool, external: bool, yes: bool) -> Output:
    names, others = inspect(file), outside_files_in(file)
    existing = sum((home.root / name).exists() for name in names)
    words = f"{file} holds {len(names)} files; {existing} of them replace files in {home.root}"
    if dry_run:
        data = {"files": len(names), "replaces": existing, "external": others}
        return Output(data, (f"{words}.", *_external_lines(others)))
    if not yes:
        for line in _external_lines(others) if external else ():
            print(line)
        confirm(f"{words}. Go on?")
    done = restore(home, file, time.time(), UserFiles(Path.home(), home) if external else None)
    lines = [f"{mark('ok')} {done.added} files added and {done.replaced} replaced in {home.root}."]
    if done.before:
        lines.append(f"  The replaced files are in {done.before}.")
    if external:
        lines.append(f"  {len(done.outside)} files outside the home are restored.")
    else:
        lines += _external_lines(others)
    return Output(done, lines)


def _external_lines(names: tuple[str, ...]) -> list[str]:
    if not names:
        return []
    shown = ", ".join(f"~/{name}" for name in names[:MOST_SHOWN])
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return [f"  It also has {shown}{more}; `--external` restores them."]
