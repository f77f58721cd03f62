"""`hermes bundles`: several skills and an instruction under one name."""

from __future__ import annotations

import click

from hermes.app.build import App
from hermes.commands.visible import one_line, sanitize
from hermes.surfaces.cli.output import Output, json_output, text_output, with_app
from hermes.surfaces.cli.style import mark


@click.group(help="Group skills under one name; /NAME in a chat loads all of them.")
def bundles_command() -> None:
    pass


@bundles_command.command("list", help="List all bundles.")
@json_output(with_app)
async def list_bundles(app: App) -> Output:
    found = app.skills().bundles.all()
    lines = [
        f"/{each.name}  {one_line(each.description)} ({', '.join(each.skills)})" for each in found
    ]
    return Output(found, lines or "No bundles; `hermes bundles create NAME --skills A,B` adds one.")


@bundles_command.command("show", help="Show what a bundle contains.")
@click.argument("name")
@json_output(with_app)
async def show_bundle(app: App, name: str) -> Output:
    found = app.skills().bundles.read(name)
    lines = [
        f"/{found.name}  {one_line(found.description)}",
        f"skills: {', '.join(found.skills)}",
        *([sanitize(found.instruction)] if found.instruction else ()),
    ]
    return Output(found, lines)


@bundles_command.command("create", help="Create or replace a bundle.")
@click.argument("name")
@click.option("--skills", required=True, metavar="A,B", help="The skills, in order.")
@click.option("--description", default="", help="What it is for.")
@click.option("--instruction", default="", help="Text to send along with the skills.")
@text_output(with_app)
async def create_bundle(
    app: App, name: str, skills: str, description: str, instruction: str
) -> str:
    wanted = tuple(each.strip() for each in skills.split(",") if each.strip())
    made = app.skills().make_bundle(name, wanted, description, instruction)
    return f"{mark('ok')} {made}"


@bundles_command.command("delete", help="Delete a bundle; its skills stay.")
@click.argument("name")
@text_output(with_app)
async def delete_bundle(app: App, name: str) -> str:
    app.skills().bundles.delete(name)
    return f"{mark('ok')} /{name} is deleted."


@bundles_command.command("reload", help="Read all bundles again and report those that are invalid.")
@text_output(with_app)
async def reload_bundles(app: App) -> str:
    bundles = app.skills().bundles
    return f"{len(bundles.all())} of {len(bundles.names())} bundles can be used."
