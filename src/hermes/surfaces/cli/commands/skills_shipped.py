"""`hermes skills reset|list-modified|opt-out|opt-in`: the bundled skills."""

from __future__ import annotations

import click

from hermes.app.build import App
from hermes.surfaces.cli.output import Output, json_output, text_output, with_app
from hermes.surfaces.cli.style import mark


@click.command(help="Reset a bundled skill: discard your edits (they stay in its history).")
@click.argument("name")
@click.option("--restore", is_flag=True, help="Also restore a skill that you have removed.")
@text_output(with_app)
async def reset(app: App, name: str, restore: bool) -> str:
    version = app.skills().reset(name, restore=restore)
    return f"{mark('ok')} {name} is reset; this is version {version}."


@click.command("list-modified", help="List bundled skills that were edited or removed.")
@json_output(with_app)
async def list_modified(app: App) -> Output:
    seeds = app.skills().seeds
    edited, removed = seeds.list_modified(), seeds.list_removed()
    lines = [
        *(f"{name}  edited; see `hermes skills diff {name}`" for name in edited),
        *(f"{name}  removed; see `hermes skills reset {name} --restore`" for name in removed),
    ]
    data = {"modified": edited, "removed": removed}
    return Output(data, lines or "No bundled skill was changed.")


@click.command("opt-out", help="Stop adding bundled skills to this home.")
@text_output(with_app)
async def opt_out(app: App) -> str:
    app.skills().seeds.opt(out=True)
    return f"{mark('ok')} Existing skills stay; none is added or updated."


@click.command("opt-in", help="Add bundled skills to this home again.")
@text_output(with_app)
async def opt_in(app: App) -> str:
    app.skills().seeds.opt(out=False)
    return f"{mark('ok')} The next start adds them."
