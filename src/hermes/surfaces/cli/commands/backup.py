"""`hermes backup`: write a home to one file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import click

from hermes.app.build import App
from hermes.core.errors import HermesError, UsageError
from hermes.homes.backup import Backup, back_up, snapshot
from hermes.homes.outside_files import OutsideFile, UserFiles, provider_paths
from hermes.surfaces.cli.output import Output, json_output, with_app
from hermes.surfaces.cli.place import config_of, home_of
from hermes.surfaces.cli.style import mark


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
        return UserFiles(Path(app.person), app.home).outside(paths)

    try:
        if not config_of(ctx).settings.memory.provider:
            return OutsideFile()
        return with_app(ctx, work)
    except HermesError as error:
        return OutsideFile(left_out=(f"what the memory provider stores elsewhere ({error})",))
