"""`hermes memory accept`, `reject`, `undo`, `forget` and `reset`: changes made by the user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from hermes.app.build import App
from hermes.commands.memory import change_line, change_number, outcome_words
from hermes.commands.visible import one_line
from hermes.memory.forgetting import ForgetReport, find_traces, plan_forget
from hermes.memory.forgetting import forget as forget_it
from hermes.surfaces.cli.asking import confirm, yes_option
from hermes.surfaces.cli.output import Output, json_output, with_app

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
