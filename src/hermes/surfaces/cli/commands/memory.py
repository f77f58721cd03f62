"""`hermes memory`: what is remembered, its origin and its history."""

from __future__ import annotations

import click

from hermes.app.build import App
from hermes.codec.json import encode
from hermes.commands.memory import change_line, entry_line, why_lines
from hermes.journal.archive import parse_date
from hermes.surfaces.cli.commands.memory_changes import accept, forget, reject, reset, undo
from hermes.surfaces.cli.commands.memory_setup import memory_off, memory_setup, memory_status
from hermes.surfaces.cli.output import Output, columns, json_output, with_app

NOTHING = "Nothing is remembered yet; say “remember that …” in a session."
DAY = len("2026-05-01")


@click.group(help="What is remembered across sessions, and why.")
def command() -> None:
    pass


@command.command("list", help="List what is remembered now.")
@click.option("--session", metavar="ID", help="Only what came from this session.")
@click.option("--all", "everything", is_flag=True, help="Include what is no longer in force.")
@json_output(with_app)
async def list_(app: App, session: str | None, everything: bool) -> Output:
    memories = app.memory.of()
    changes = [
        change
        for change in await memories.changes()
        if not session or change.source.session_id == session
    ]
    if everything:
        return Output(changes, [*map(change_line, changes)] or NOTHING)
    made = {change.id for change in changes}
    entries = [entry for entry in await memories.entries() if entry.change in made]
    return Output(entries, [*map(entry_line, entries)] or NOTHING)


@command.command(help="Show one entry in full.")
@click.argument("entry", metavar="M1|TEXT")
@json_output(with_app)
async def show(app: App, entry: str) -> Output:
    found = (await app.memory.why(entry)).entry
    gone = "It is no longer remembered; `hermes memory why` shows its history."
    return Output(found, gone if found is None else found.text)


@command.command(help="Show the origin of an entry: who said what and when, and earlier versions.")
@click.argument("entry", metavar="M1|TEXT")
@json_output(with_app)
async def why(app: App, entry: str) -> Output:
    found = await app.memory.why(entry)
    return Output(found, why_lines(found))


@command.command("as-of", help="What was remembered at the end of a day, or at a time.")
@click.argument("date", metavar="DATE")
@json_output(with_app)
async def as_of(app: App, date: str) -> Output:
    at = parse_date(date)
    if len(date.strip()) == DAY:
        at += 86_399.999999
    found = await app.memory.of().as_of(at)
    return Output(found, [*map(entry_line, found)] or "Nothing was remembered then.")


@command.command(help="Every change, oldest first.")
@json_output(with_app)
async def log(app: App) -> Output:
    found = await app.memory.of().changes()
    return Output(found, [*map(change_line, found)] or NOTHING)


@command.command(help="List the changes that wait for your approval.")
@json_output(with_app)
async def pending(app: App) -> Output:
    found = await app.memory.of().pending()
    if not found:
        return Output(found, "No changes are pending.")
    first = f"c{found[0].id}"
    advice = f"`hermes memory accept {first}` or `reject {first}` decides."
    return Output(found, [*map(change_line, found), advice])


@command.command(help="Everything with its history, one JSON line per change.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write here, not to stdout.")
@click.pass_context
def export(ctx: click.Context, output: str | None) -> None:
    found = with_app(ctx, lambda app: app.memory.of().changes())
    lines = b"".join(encode(columns(change)) + b"\n" for change in found)
    with click.open_file(output or "-", "wb") as file:
        file.write(lines)


for each in (
    accept,
    reject,
    undo,
    forget,
    reset,
    memory_setup,
    memory_status,
    memory_off,
):
    command.add_command(each)
