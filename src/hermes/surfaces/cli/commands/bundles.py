"""`hermes bundles`: several skills and an instruction under one name."""

from __future__ import annotations

import click

from hermes.app.build import App
from hermes.commands.visible import clean, one_line
from hermes.surfaces.cli.output import as_json_option, columns, print_json, with_app
from hermes.surfaces.cli.style import mark


@click.group(help="Several skills under one name: /NAME in a chat loads them all.")
def command() -> None:
    pass


@command.command("list", help="Which ones there are.")
@as_json_option
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    async def work(app: App) -> object:
        return columns(app.skills().bundles.all())

    found = with_app(ctx, work)
    if as_json:
        print_json(found)
        return
    for each in found if isinstance(found, list) else ():
        print(f"/{each['name']}  {one_line(each['description'])} ({', '.join(each['skills'])})")
    if not found:
        print("No bundles; `hermes bundles create NAME --skills A,B` makes one.")


@command.command(help="What a bundle holds.")
@click.argument("name")
@as_json_option
@click.pass_context
def show(ctx: click.Context, name: str, as_json: bool) -> None:
    async def work(app: App) -> object:
        return columns(app.skills().bundles.read(name))

    found = with_app(ctx, work)
    if as_json or not isinstance(found, dict):
        print_json(found)
        return
    print(f"/{found['name']}  {one_line(found['description'])}")
    print(f"skills: {', '.join(found['skills'])}")
    if found["instruction"]:
        print(clean(found["instruction"]))


@command.command(help="Make one, or replace it.")
@click.argument("name")
@click.option("--skills", required=True, metavar="A,B", help="The skills, in order.")
@click.option("--description", default="", help="What it is for.")
@click.option("--instruction", default="", help="What to say with the skills.")
@click.pass_context
def create(ctx: click.Context, name: str, skills: str, description: str, instruction: str) -> None:
    wanted = tuple(each.strip() for each in skills.split(",") if each.strip())

    async def work(app: App) -> str:
        return app.skills().make_bundle(name, wanted, description, instruction)

    print(f"{mark('ok')} {with_app(ctx, work)}")


@command.command(help="Remove one; its skills stay.")
@click.argument("name")
@click.pass_context
def delete(ctx: click.Context, name: str) -> None:
    async def work(app: App) -> None:
        app.skills().bundles.delete(name)

    with_app(ctx, work)
    print(f"{mark('ok')} /{name} is gone.")


@command.command(help="Read them again; says what is wrong with any.")
@click.pass_context
def reload(ctx: click.Context) -> None:
    async def work(app: App) -> tuple[int, int]:
        bundles = app.skills().bundles
        return len(bundles.all()), len(bundles.names())

    readable, all_of_them = with_app(ctx, work)
    print(f"{readable} of {all_of_them} bundles can be used.")
