"""`hermes memory accept`, `reject`, `undo`, `forget` and `reset`: a person changes memory."""

from __future__ import annotations

from typing import Any

import click

from hermes.app.build import App
from hermes.commands.memory import change_line, change_number, outcome_words
from hermes.commands.visible import one_line
from hermes.memory.forgetting import Forgotten, doomed, traces
from hermes.memory.forgetting import forget as forget_it
from hermes.surfaces.cli.commands.sessions_removal import confirm, yes_option
from hermes.surfaces.cli.output import as_json_option, columns, print_json, with_app

LINE = 120


@click.command(help="Let something be remembered that waited for your word.")
@click.argument("changes", metavar="C1...", nargs=-1, required=True)
@as_json_option
@click.pass_context
def accept(ctx: click.Context, changes: tuple[str, ...], as_json: bool) -> None:
    _settle(ctx, "accept", changes, as_json)


@click.command(help="Refuse something that waited for your word.")
@click.argument("changes", metavar="C1...", nargs=-1, required=True)
@as_json_option
@click.pass_context
def reject(ctx: click.Context, changes: tuple[str, ...], as_json: bool) -> None:
    _settle(ctx, "reject", changes, as_json)


def _settle(ctx: click.Context, verb: str, changes: tuple[str, ...], as_json: bool) -> None:
    numbers = [change_number(each) for each in changes]

    async def work(app: App) -> list[Any]:
        memories, source = app.memory.of(), app.memory.by_hand("cli")
        decide = memories.accept if verb == "accept" else memories.reject
        return [await decide(number, source=source) for number in numbers]

    done = with_app(ctx, work)
    if as_json:
        print_json(columns(tuple(done)))
    for each in () if as_json else done:
        print(outcome_words(each))
    if any(hasattr(each, "error") for each in done):
        ctx.exit(1)


@click.command(help="Take back the last change of memory, a named one, or all of a session.")
@click.argument("change", metavar="[C1]", required=False)
@click.option("--session", metavar="ID", help="All that came from this session.")
@as_json_option
@click.pass_context
def undo(ctx: click.Context, change: str | None, session: str | None, as_json: bool) -> None:
    async def work(app: App) -> tuple[list[Any], list[Any]]:
        memories, source = app.memory.of(), app.memory.by_hand("cli")
        if session:
            return await memories.undo_session(session, source=source)
        number = change_number(change) if change else 0
        return list(await memories.undo(number, source=source)), []

    back, kept = with_app(ctx, work)
    if as_json:
        print_json({"undone": columns(tuple(back)), "kept": columns(tuple(kept))})
        return
    for each in back:
        print(f"taken back  {change_line(each)}")
    for each in kept:
        print(f"stays       {change_line(each)} (something newer is built on it)")
    if not back and not kept:
        print("Nothing came from this session.")


@click.command(
    help="Forget an entry, or any words, for ever: memory, sessions, search index, logs, "
    "recordings and undo of this home lose every copy. This cannot be taken back."
)
@click.argument("what", metavar="M1|TEXT")
@click.option("--also", metavar="TEXT", multiple=True, help="Other words for the same thing.")
@click.option("--dry-run", is_flag=True, help="Only say where it stands.")
@yes_option
@as_json_option
@click.pass_context
def forget(
    ctx: click.Context, what: str, also: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool
) -> None:
    async def look(app: App) -> tuple[Any, dict[str, tuple[int, ...]]]:
        found = await doomed(app.memory, what, also)
        return found, await traces(app.memory, app.library, found)

    found, sessions = with_app(ctx, look)
    if dry_run:
        _print_traces(found, sessions, as_json)
        return
    if not yes:
        texts = "; ".join(f"“{one_line(text, LINE)}”" for text in found.texts)
        confirm(f"Forget {texts} for ever, in {len(sessions)} session(s) too?")
    done = with_app(ctx, lambda app: forget_it(app.memory, app.library, found))
    if as_json:
        print_json(columns(done))
    else:
        _print_forgotten(done)


def _print_traces(found: Any, sessions: dict[str, tuple[int, ...]], as_json: bool) -> None:
    if as_json:
        print_json({"texts": found.texts, "changes": found.changes, "sessions": sessions})
        return
    for text in found.texts:
        print(f"would forget  {one_line(text, LINE)}")
    for session_id, numbers in sessions.items():
        print(f"in session    {session_id}: record(s) {', '.join(map(str, numbers))}")


def _print_forgotten(done: Forgotten) -> None:
    print(
        f"Forgotten: {len(done.entries)} entr{'y' if len(done.entries) == 1 else 'ies'}, "
        f"{done.records} record(s) of {len(done.sessions)} session(s), {len(done.files)} other "
        f"file(s), {done.recordings} recording(s), {done.contents} undo copies."
    )
    for path in done.files:
        print(f"  changed {path}")
    for words in done.left:
        print(f"  left: {words}")


@click.command(help="Remove everything from MEMORY.md, USER.md or both; `undo` brings it back.")
@click.option("--target", type=click.Choice(["memory", "user", "all"]), default="all")
@yes_option
@as_json_option
@click.pass_context
def reset(ctx: click.Context, target: str, yes: bool, as_json: bool) -> None:
    if not yes:
        confirm("Remove everything that is remembered?")

    async def work(app: App) -> dict[str, int]:
        source = app.memory.by_hand("cli")
        memories = app.memory.of()
        counts: dict[str, int] = {}
        if target in ("memory", "all"):
            counts["memory"] = await memories.clear("memory", source=source)
        if target in ("user", "all"):
            counts["user"] = await memories.clear("user", source=source)
        return counts

    counts = with_app(ctx, work)
    if as_json:
        print_json(counts)
    else:
        print(f"{sum(counts.values())} entries are removed.")
