"""`hermes memory`: what is remembered, its origin, its history, and changing it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from hermes.app.app import App
from hermes.codec.json import encode
from hermes.commands.formatting import one_line
from hermes.commands.memory import change_line, change_number, entry_line, outcome_words, why_lines
from hermes.journal.archive import parse_date
from hermes.memory.forgetting import ForgetReport, find_traces, plan_forget
from hermes.memory.forgetting import forget as forget_it
from hermes.surfaces.cli.commands.memory_providers import memory_off, memory_setup, memory_status
from hermes.surfaces.cli.output import Output, columns, confirm, json_output, with_app, yes_option

LINE = 120
UNCHANGED = "Nothing was removed."


@click.command(help="Accept pending changes.")
@click.argument("changes", metavar="C1...", nargs=-1, required=True)
@json_output(with_app)
async def accept(app: App, changes: tuple[str, ...]) -> Output:
    return await _settle(app, changes, app.memory.of().accept)


@click.command(help="Reject pending changes.")
@click.argument("changes", metavar="C1...", nargs=-1, required=True)
@json_output(with_app)
async def reject(app: App, changes: tuple[str, ...]) -> Output:
    return await _settle(app, changes, app.memory.of().reject)


async def _settle(app: App, changes: tuple[str, ...], decide: Any) -> Output:
    source = app.memory.by_hand("cli")
    numbers = [change_number(each) for each in changes]
    done = [await decide(number, source=source) for number in numbers]
    failed = any(hasattr(each, "error") for each in done)
    return Output(done, map(outcome_words, done), code=failed)


@click.command(help="Undo the last change of memory, a given one, or all of a session.")
@click.argument("change", metavar="[C1]", required=False)
@click.option("--session", metavar="ID", help="All changes from this session.")
@json_output(with_app)
async def undo(app: App, change: str | None, session: str | None) -> Output:
    memories, source = app.memory.of(), app.memory.by_hand("cli")
    undone: list[Any]
    kept: list[Any] = []
    if session:
        undone, kept = await memories.undo_session(session, source=source)
    else:
        number = change_number(change) if change else 0
        undone = list(await memories.undo(number, source=source))
    lines = [
        *(f"undone  {change_line(each)}" for each in undone),
        *(f"kept    {change_line(each)} (a newer change depends on it)" for each in kept),
    ]
    return Output({"undone": undone, "kept": kept}, lines or "Nothing came from this session.")


@click.command(
    help="Erase an entry, or any text, permanently: every copy in memory, sessions, search index, "
    "logs, recordings and undo of this home is removed. This cannot be undone."
)
@click.argument("what", metavar="M1|TEXT")
@click.option("--also", metavar="TEXT", multiple=True, help="Other wordings of the same thing.")
@click.option("--dry-run", is_flag=True, help="Only show where it occurs.")
@yes_option
@json_output()
def forget(
    ctx: click.Context, what: str, also: tuple[str, ...], dry_run: bool, yes: bool
) -> Output:
    async def look(app: App) -> tuple[Any, dict[str, tuple[int, ...]]]:
        found = await plan_forget(app.memory, what, also)
        return found, await find_traces(app.memory, app.archive, found)

    found, sessions = with_app(ctx, look)
    if dry_run:
        data = {"texts": found.texts, "changes": found.changes, "sessions": sessions}
        return Output(data, _trace_lines(found.texts, sessions))
    if not yes:
        texts = "; ".join(f"“{one_line(text, LINE)}”" for text in found.texts)
        confirm(
            f"Erase {texts} permanently, also in {len(sessions)} session(s)?", otherwise=UNCHANGED
        )
    done = with_app(ctx, lambda app: forget_it(app.memory, app.archive, found))
    return Output(done, _forgotten_lines(done))


def _trace_lines(texts: tuple[str, ...], sessions: dict[str, tuple[int, ...]]) -> Iterator[str]:
    for text in texts:
        yield f"would erase   {one_line(text, LINE)}"
    for session_id, numbers in sessions.items():
        yield f"in session    {session_id}: record(s) {', '.join(map(str, numbers))}"


def _forgotten_lines(done: ForgetReport) -> Iterator[str]:
    yield (
        f"Erased: {len(done.entries)} entr{'y' if len(done.entries) == 1 else 'ies'}, "
        f"{done.records} record(s) of {len(done.sessions)} session(s), {len(done.files)} other "
        f"file(s), {done.recordings} recording(s), {done.contents} undo copies."
    )
    for path in done.files:
        yield f"  changed {path}"
    for words in done.left:
        yield f"  left: {words}"


@click.command(help="Remove everything from MEMORY.md, USER.md or both; `undo` restores it.")
@click.option("--target", type=click.Choice(["memory", "user", "all"]), default="all")
@yes_option
@json_output()
def reset(ctx: click.Context, target: str, yes: bool) -> Output:
    if not yes:
        confirm("Remove everything that is remembered?", otherwise=UNCHANGED)

    async def work(app: App) -> dict[str, int]:
        memories, source = app.memory.of(), app.memory.by_hand("cli")
        counts: dict[str, int] = {}
        if target in ("memory", "all"):
            counts["memory"] = await memories.clear("memory", source=source)
        if target in ("user", "all"):
            counts["user"] = await memories.clear("user", source=source)
        return counts

    counts = with_app(ctx, work)
    return Output(counts, f"{sum(counts.values())} entries are removed.")


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
