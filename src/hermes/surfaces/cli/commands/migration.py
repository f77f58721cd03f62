"""`hermes import` and `claw`: restore a backup, or migrate from another agent."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import cast

import click

from hermes.codec.values import replace
from hermes.commands.formatting import plural
from hermes.config.environment import process_environment
from hermes.config.home import Home
from hermes.core.errors import NotFound, UsageError
from hermes.homes.archive_files import UserFiles
from hermes.homes.backup import inspect, outside_files_in, restore
from hermes.homes.foreign_homes import ForeignHome, read_openclaw
from hermes.homes.migration import (
    MigrationItem,
    MigrationOptions,
    SkillConflict,
    run_migration,
)
from hermes.surfaces.cli.command_context import home_of, mark, warn, with_app
from hermes.surfaces.cli.output import (
    CommandGroup,
    Output,
    confirm,
    dry_run_option,
    json_command,
    print_output,
    yes_option,
)


def import_foreign(
    ctx: click.Context, foreign: ForeignHome, options: MigrationOptions, *, yes: bool, as_json: bool
) -> Output:
    def migrate(options: MigrationOptions) -> tuple[MigrationItem, ...]:
        return with_app(
            ctx, lambda app: run_migration(app.context, app.memory, app.archive, foreign, options)
        )

    for problem in foreign.problems:
        warn(problem)
    if not (yes or options.dry_run):
        planned = migrate(replace(options, dry_run=True))
        if not as_json:
            print_output(_result(planned), as_json=False)
        wanted = sum(item.state == "would be taken" for item in planned)
        confirm(f"Import {plural(wanted, 'item')}? {foreign.root} stays unchanged.")
    return _result(migrate(options))


def _result(items: tuple[MigrationItem, ...]) -> Output:
    def lines() -> Iterator[str]:
        for item in items:
            sign = mark("warn") if item.state == "left out" else mark("ok")
            note = f" ({item.note})" if item.note else ""
            yield f"{sign} {item.kind:<9} {item.name}: {item.state}{note}"
        counts = Counter(item.state for item in items)
        total = "; ".join(f"{count} {state}" for state, count in counts.items())
        yield total or "There is nothing to import."

    return Output(items, lines())


CONFLICTS = ("skip", "overwrite", "rename")

claw_command = CommandGroup(help="Migrate from OpenClaw.")


@claw_command.json("Import identity, memory, skills and model of OpenClaw (FOLDER: ~/.openclaw).")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@dry_run_option
@click.option(
    "--preset",
    type=click.Choice(["user-data", "full"]),
    default="full",
    help="Import everything (full), or everything except settings and keys.",
)
@click.option("--overwrite", is_flag=True, help="Replace what already exists.")
@click.option("--migrate-secrets", is_flag=True, help="Also import API keys.")
@click.option(
    "--skill-conflict",
    type=click.Choice(CONFLICTS),
    default="skip",
    help="Choose what happens to skills that already exist.",
)
@yes_option
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
) -> Output:
    full = preset == "full"
    if migrate_secrets and not full:
        raise UsageError("--preset user-data imports no keys; leave out --migrate-secrets.")
    installation = read_openclaw(_root(folder, ".openclaw"))
    options = MigrationOptions(
        secrets=migrate_secrets,
        settings=full,
        overwrite=overwrite,
        skill_conflict=cast(SkillConflict, skill_conflict),
        dry_run=dry_run,
    )
    foreign = installation if full else replace(installation, secrets={})
    return import_foreign(ctx, foreign, options, yes=yes, as_json=as_json)


@claw_command.json("Rename the folder of OpenClaw after the migration.")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@dry_run_option
@yes_option
def cleanup(ctx: click.Context, folder: Path | None, dry_run: bool, yes: bool) -> Output:
    root = _root(folder, ".openclaw")
    if not root.is_dir():
        raise NotFound(f"There is no folder {root}; name the folder of OpenClaw.")
    names = (f"{root.name}.moved-in{number or ''}" for number in count())
    target = next(path for name in names if not (path := root.with_name(name)).exists())
    if not dry_run:
        confirm(f"Rename {root} to {target.name}? OpenClaw will no longer find it.", yes=yes)
        root.rename(target)
    verb = "would be" if dry_run else "is now"
    data = {"from": str(root), "to": str(target), "done": not dry_run}
    return Output(data, f"{root} {verb} {target}.")


def _root(folder: Path | None, name: str) -> Path:
    source = folder or Path(process_environment().get("HOME", "~")).expanduser() / name
    return source.absolute()


HERMES_AGENT = "hermes-agent"
MOST_SHOWN = 5


@json_command(
    "Restore a backup (`hermes import FILE.zip`), or migrate from Hermes Agent "
    "(`hermes import hermes-agent [FOLDER]`; its files are not changed)."
)
@click.argument("what", metavar="FILE|hermes-agent")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@dry_run_option
@click.option("--overwrite", is_flag=True, help="With hermes-agent: replace what already exists.")
@click.option("--secrets", is_flag=True, help="With hermes-agent: also import API keys.")
@click.option("--external", is_flag=True, help="With FILE: also restore files outside HERMES_HOME.")
@click.option(
    "-y", "-f", "--yes", "--force", "yes", is_flag=True, help="Do not ask for confirmation."
)
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
) -> Output:
    if what == HERMES_AGENT:
        # Reading foreign settings needs the YAML library, which is slow to load.
        from hermes.homes.foreign_homes import read_hermes_agent

        options = MigrationOptions(secrets=secrets, overwrite=overwrite, dry_run=dry_run)
        foreign = read_hermes_agent(_root(folder, ".hermes"))
        return import_foreign(ctx, foreign, options, yes=yes, as_json=as_json)
    if folder is not None or overwrite or secrets:
        raise UsageError(f"A folder, --overwrite and --secrets need `{HERMES_AGENT}`, not a file.")
    return _restore(home_of(ctx), Path(what), dry_run=dry_run, external=external, yes=yes)


def _restore(home: Home, file: Path, *, dry_run: bool, external: bool, yes: bool) -> Output:
    names, others = inspect(file), outside_files_in(file)
    existing = sum((home.root / name).exists() for name in names)
    summary = f"{file} has {len(names)} files; {existing} of them replace files in {home.root}"
    if dry_run:
        data = {"files": len(names), "replaces": existing, "external": others}
        return Output(data, (f"{summary}.", *_external_lines(others)))
    for line in _external_lines(others) if external and not yes else ():
        print(line)
    confirm(f"{summary}. Continue?", yes=yes)
    done = restore(home, file, time.time(), UserFiles(Path.home(), home) if external else None)
    lines = [f"{mark('ok')} {done.added} files added and {done.replaced} replaced in {home.root}."]
    if done.before:
        lines.append(f"  The old files are in {done.before}.")
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
    return [f"  The file also has {shown}{more}; --external restores them."]
