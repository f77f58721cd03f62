"""`hermes skills reset|list-modified|opt-out|opt-in`: the skills that come with Hermes."""

from __future__ import annotations

import click

from hermes.app.build import App
from hermes.surfaces.cli.output import as_json_option, print_json, with_app
from hermes.surfaces.cli.style import mark


@click.command(help="A skill as it came with Hermes: forget your edits (they stay in its history).")
@click.argument("name")
@click.option("--restore", is_flag=True, help="Also one that you have removed.")
@click.pass_context
def reset(ctx: click.Context, name: str, restore: bool) -> None:
    async def work(app: App) -> str:
        return app.skills().reset(name, restore=restore)

    print(f"{mark('ok')} {name} is as it came; this is version {with_app(ctx, work)}.")


@click.command("list-modified", help="Skills that came with Hermes and were edited or removed.")
@as_json_option
@click.pass_context
def list_modified(ctx: click.Context, as_json: bool) -> None:
    async def work(app: App) -> tuple[tuple[str, ...], tuple[str, ...]]:
        seeds = app.skills().seeds
        return seeds.modified(), seeds.missing()

    edited, removed = with_app(ctx, work)
    if as_json:
        print_json({"modified": edited, "removed": removed})
        return
    for name in edited:
        print(f"{name}  edited; `hermes skills diff {name}` shows how")
    for name in removed:
        print(f"{name}  removed; `hermes skills reset {name} --restore` brings it back")
    if not edited and not removed:
        print("All skills that came with Hermes are as they came.")


@click.command("opt-out", help="Put no more skills that come with Hermes into this home.")
@click.pass_context
def opt_out(ctx: click.Context) -> None:
    _opt(ctx, out=True)
    print(f"{mark('ok')} What is there stays; nothing is added or updated.")


@click.command("opt-in", help="Put them there again.")
@click.pass_context
def opt_in(ctx: click.Context) -> None:
    _opt(ctx, out=False)
    print(f"{mark('ok')} The next start puts them there.")


def _opt(ctx: click.Context, *, out: bool) -> None:
    async def work(app: App) -> None:
        app.skills().seeds.opt(out=out)

    with_app(ctx, work)


COMMANDS = (reset, list_modified, opt_out, opt_in)
