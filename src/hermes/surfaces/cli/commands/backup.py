"""`hermes backup`: a home in one file."""

from __future__ import annotations

import time
from pathlib import Path

import click

from hermes.app.build import App
from hermes.core.errors import HermesError, UsageError
from hermes.homes.backup import back_up, snapshot
from hermes.homes.outside_files import Outside, PersonsFiles, named_by_provider
from hermes.surfaces.cli.output import as_json_option, columns, print_json, with_app
from hermes.surfaces.cli.place import config_of, home_of
from hermes.surfaces.cli.style import mark


@click.command(help="Put this home into one zip file; `hermes import FILE` takes it out again.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file to write.")
@click.option("-q", "--quick", is_flag=True, help="Only settings, keys and sessions.")
@click.option("-l", "--label", default="", help="A word for the name of the file.")
@as_json_option
@click.pass_context
def command(
    ctx: click.Context, output: Path | None, quick: bool, label: str, as_json: bool
) -> None:
    if quick and output is not None:
        raise UsageError("A quick backup stays in the home; leave out --output or --quick.")
    home, now = home_of(ctx), time.time()
    found = Outside() if quick else _outside(ctx)
    if quick:
        made = snapshot(home, now, label=label)
    else:
        files = {name: Path.home() / name for name in found.files}
        made = back_up(home, now, to=output, label=label, beside=files)
    if as_json:
        told = {"file": made.file, "files": made.files, "bytes": made.bytes}
        print_json({**told, "outside": columns(found)})
        return
    size = f"{made.bytes / 1e6:.1f} MB" if made.bytes >= 1e5 else f"{made.bytes:,} bytes"
    print(f"{mark('ok')} {made.files} files ({size}) are in {made.file}.")
    if found.files:
        print(f"  {len(found.files)} of them are kept beside the home by your memory provider.")
    for words in found.left_out:
        print(f"{mark('warn')} not in it: {words}")
    print("It holds your keys and all that was said: keep it where only you can read it.")


def _outside(ctx: click.Context) -> Outside:
    """Settings or plugins that do not work are no reason not to back up the rest."""

    async def work(app: App) -> Outside:
        paths = await named_by_provider(app.memory)
        return PersonsFiles(Path(app.person), app.home).outside(paths)

    try:
        if not config_of(ctx).settings.memory.provider:
            return Outside()
        return with_app(ctx, work)
    except HermesError as error:
        return Outside(left_out=(f"what the memory provider keeps elsewhere ({error})",))
