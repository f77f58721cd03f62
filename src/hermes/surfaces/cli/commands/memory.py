"""`hermes memory`: what is remembered, its origin, its history, and changing it."""

from __future__ import annotations

from typing import Any

import click

from hermes.codec.json import encode
from hermes.commands.formatting import one_line
from hermes.commands.memory import change_line, change_number, entry_line, outcome_words, why_lines
from hermes.journal.listing import parse_date
from hermes.memory.entries import TARGETS
from hermes.memory.forgetting import find_traces, plan_forget
from hermes.memory.forgetting import forget as forget_it
from hermes.memory.service import MemoryService
from hermes.surfaces.cli.command_context import with_app
from hermes.surfaces.cli.commands.memory_providers import provider_commands, with_memory
from hermes.surfaces.cli.output import CommandGroup, Output, columns, confirm, yes_option

LINE = 120
UNCHANGED = "Nothing was removed."
NOTHING = "Nothing is remembered yet; say “remember that …” in a session."
DAY = len("2026-05-01")

command = CommandGroup(
    help="What is remembered across sessions, and why.", commands=provider_commands.commands
)


@command.json("Accept pending changes.", with_memory)
@click.argument("changes", metavar="C1...", nargs=-1, required=True)
async def accept(memory: MemoryService, changes: tuple[str, ...]) -> Output:
    return await _settle(memory, changes, memory.of().accept)


@command.json("Reject pending changes.", with_memory)
@click.argument("changes", metavar="C1...", nargs=-1, required=True)
async def reject(memory: MemoryService, changes: tuple[str, ...]) -> Output:
    return await _settle(memory, changes, memory.of().reject)


async def _settle(memory: MemoryService, changes: tuple[str, ...], decide: Any) -> Output:
    source = memory.by_hand("cli")
    numbers = [change_number(each) for each in changes]
    done = [await decide(number, source=source) for number in numbers]
    failed = any(hasattr(each, "error") for each in done)
    return Output(done, map(outcome_words, done), code=failed)


@command.json("Undo the last change of memory, a given one, or all of a session.", with_memory)
@click.argument("change", metavar="[C1]", required=False)
@click.option("--session", metavar="ID", help="All changes from this session.")
async def undo(memory: MemoryService, change: str | None, session: str | None) -> Output:
    memories, source = memory.of(), memory.by_hand("cli")
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


@command.json(
    "Erase an entry, or any text, permanently: every copy in memory, sessions, search index, "
    "logs, recordings and undo of this home is removed. This cannot be undone."
)
@click.argument("what", metavar="M1|TEXT")
@click.option("--also", metavar="TEXT", multiple=True, help="Other wordings of the same thing.")
@click.option("--dry-run", is_flag=True, help="Only show where it occurs.")
@yes_option
def forget(
    ctx: click.Context, what: str, also: tuple[str, ...], dry_run: bool, yes: bool
) -> Output:
    found = with_memory(ctx, lambda memory: plan_forget(memory, what, also))
    sessions = with_app(ctx, lambda app: find_traces(app.memory, app.archive, found))
    if dry_run:
        data = {"texts": found.texts, "changes": found.changes, "sessions": sessions}
        lines = [f"would erase   {one_line(text, LINE)}" for text in found.texts]
        for session_id, numbers in sessions.items():
            lines.append(f"in session    {session_id}: record(s) {', '.join(map(str, numbers))}")
        return Output(data, lines)
    texts = "; ".join(f"“{one_line(text, LINE)}”" for text in found.texts)
    question = f"Erase {texts} permanently, also in {len(sessions)} session(s)?"
    confirm(question, yes=yes, otherwise=UNCHANGED)
    done = with_app(ctx, lambda app: forget_it(app.memory, app.archive, found))
    lines = [
        f"Erased: {len(done.entries)} entr{'y' if len(done.entries) == 1 else 'ies'}, "
        f"{done.records} record(s) of {len(done.sessions)} session(s), {len(done.files)} other "
        f"file(s), {done.recordings} recording(s), {done.contents} undo copies.",
        *(f"  changed {path}" for path in done.files),
        *(f"  left: {words}" for words in done.left),
    ]
    return Output(done, lines)


@command.json("Remove everything from MEMORY.md, USER.md or both; `undo` restores it.")
@click.option("--target", type=click.Choice(["memory", "user", "all"]), default="all")
@yes_option
def reset(ctx: click.Context, target: str, yes: bool) -> Output:
    confirm("Remove everything that is remembered?", yes=yes, otherwise=UNCHANGED)

    async def clear(memory: MemoryService) -> dict[str, int]:
        memories, source = memory.of(), memory.by_hand("cli")
        return {
            each: await memories.clear(each, source=source)
            for each in TARGETS
            if target in (each, "all")
        }

    counts = with_memory(ctx, clear)
    return Output(counts, f"{sum(counts.values())} entries are removed.")


@command.json("List what is remembered now.", with_memory)
@click.option("--session", metavar="ID", help="Only what came from this session.")
@click.option("--all", "everything", is_flag=True, help="Include what is no longer in force.")
async def list_(memory: MemoryService, session: str | None, everything: bool) -> Output:
    memories = memory.of()
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


@command.json("Show one entry in full.", with_memory)
@click.argument("entry", metavar="M1|TEXT")
async def show(memory: MemoryService, entry: str) -> Output:
    found = (await memory.why(entry)).entry
    gone = "It is no longer remembered; `hermes memory why` shows its history."
    return Output(found, gone if found is None else found.text)


@command.json(
    "Show the origin of an entry: who said what and when, and earlier versions.", with_memory
)
@click.argument("entry", metavar="M1|TEXT")
async def why(memory: MemoryService, entry: str) -> Output:
    found = await memory.why(entry)
    return Output(found, why_lines(found))


@command.json("What was remembered at the end of a day, or at a time.", with_memory)
@click.argument("date", metavar="DATE")
async def as_of(memory: MemoryService, date: str) -> Output:
    at = parse_date(date)
    if len(date.strip()) == DAY:
        at += 86_399.999999
    found = await memory.of().as_of(at)
    return Output(found, [*map(entry_line, found)] or "Nothing was remembered then.")


@command.json("Every change, oldest first.", with_memory)
async def log(memory: MemoryService) -> Output:
    found = await memory.of().changes()
    return Output(found, [*map(change_line, found)] or NOTHING)


@command.json("List the changes that wait for your approval.", with_memory)
async def pending(memory: MemoryService) -> Output:
    found = await memory.of().pending()
    if not found:
        return Output(found, "No changes are pending.")
    first = f"c{found[0].id}"
    advice = f"`hermes memory accept {first}` or `reject {first}` decides."
    return Output(found, [*map(change_line, found), advice])


@command.text("Everything with its history, one JSON line per change.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write here, not to stdout.")
def export(ctx: click.Context, output: str | None) -> None:
    found = with_memory(ctx, lambda memory: memory.of().changes())
    lines = b"".join(encode(columns(change)) + b"\n" for change in found)
    with click.open_file(output or "-", "wb") as file:
        file.write(lines)
