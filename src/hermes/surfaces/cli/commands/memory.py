"""`hermes memory`: what is remembered, where it comes from and what it was; more in the modules
beside it."""

from __future__ import annotations

from typing import Any

import click

from hermes.app.build import App
from hermes.codec.json import encode
from hermes.commands.memory import change_line, entry_line, why_lines
from hermes.journal.archive import parse_date
from hermes.surfaces.cli.commands import memory_changes, memory_setup
from hermes.surfaces.cli.output import as_json_option, columns, print_json, with_app

NOTHING = "Nothing is remembered yet; say “remember that …” in a session."
NO_WAITING = "Nothing waits."
DAY = len("2026-05-01")


@click.group(help="What is remembered from one session to the next, and why.")
def command() -> None:
    pass


@command.command("list", help="What is remembered now.")
@click.option("--session", metavar="ID", help="Only what came from this session.")
@click.option("--all", "everything", is_flag=True, help="Also what is not in force any more.")
@as_json_option
@click.pass_context
def list_(ctx: click.Context, session: str | None, everything: bool, as_json: bool) -> None:
    async def work(app: App) -> Any:
        memories = app.memory.of()
        changes = await memories.changes()
        made_by = {change.id: change for change in changes}
        found = [
            entry
            for entry in await memories.entries()
            if not session or made_by[entry.change].source.session_id == session
        ]
        if everything:
            return [each for each in changes if not session or each.source.session_id == session]
        return found

    found = with_app(ctx, work)
    if as_json:
        print_json(columns(tuple(found)))
        return
    for each in found:
        print(change_line(each) if everything else entry_line(each))
    if not found:
        print(NOTHING)


@command.command(help="One entry in full.")
@click.argument("entry", metavar="M1|TEXT")
@as_json_option
@click.pass_context
def show(ctx: click.Context, entry: str, as_json: bool) -> None:
    why = with_app(ctx, lambda app: app.memory.why(entry))
    if as_json:
        print_json(columns(why.entry) if why.entry else None)
    elif why.entry is None:
        print("It is not remembered any more; `hermes memory why` tells its story.")
    else:
        print(why.entry.text)


@command.command(help="Where an entry comes from: who said what and when, and what it said before.")
@click.argument("entry", metavar="M1|TEXT")
@as_json_option
@click.pass_context
def why(ctx: click.Context, entry: str, as_json: bool) -> None:
    found = with_app(ctx, lambda app: app.memory.why(entry))
    if as_json:
        print_json(columns(found))
        return
    for line in why_lines(found):
        print(line)


@command.command("as-of", help="What was remembered at the end of a day, or at a time.")
@click.argument("date", metavar="DATE")
@as_json_option
@click.pass_context
def as_of(ctx: click.Context, date: str, as_json: bool) -> None:
    at = parse_date(date)
    if len(date.strip()) == DAY:
        at += 86_399.999999
    found = with_app(ctx, lambda app: app.memory.of().as_of(at))
    if as_json:
        print_json(columns(found))
        return
    for entry in found:
        print(entry_line(entry))
    if not found:
        print("Nothing was remembered then.")


@command.command(help="Every change, oldest first.")
@as_json_option
@click.pass_context
def log(ctx: click.Context, as_json: bool) -> None:
    found = with_app(ctx, lambda app: app.memory.of().changes())
    if as_json:
        print_json(columns(found))
        return
    for change in found:
        print(change_line(change))
    if not found:
        print(NOTHING)


@command.command(help="What waits for your word before it is remembered.")
@as_json_option
@click.pass_context
def pending(ctx: click.Context, as_json: bool) -> None:
    found = with_app(ctx, lambda app: app.memory.of().pending())
    if as_json:
        print_json(columns(found))
        return
    for change in found:
        print(change_line(change))
    first = f"c{found[0].id}" if found else ""
    print(f"`hermes memory accept {first}` or `reject {first}` decides." if found else NO_WAITING)


@command.command(help="Everything with its whole story, one JSON line per change.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write here, not to stdout.")
@click.pass_context
def export(ctx: click.Context, output: str | None) -> None:
    found = with_app(ctx, lambda app: app.memory.of().changes())
    lines = b"".join(encode(columns(change)) + b"\n" for change in found)
    with click.open_file(output or "-", "wb") as file:
        file.write(lines)


for each in (
    memory_changes.accept,
    memory_changes.reject,
    memory_changes.undo,
    memory_changes.forget,
    memory_changes.reset,
    memory_setup.setup,
    memory_setup.status,
    memory_setup.off,
):
    command.add_command(each)
