"""`hermes memory` and `hermes honcho`: what is remembered, its history, and the user model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, JsonValue
from hermes.commands.formatting import one_line, plural
from hermes.commands.memory import change_line, change_number, entry_line, outcome_words, why_lines
from hermes.config.edit import set_from_text
from hermes.core.errors import UsageError
from hermes.journal.listing import parse_date
from hermes.memory.entries import TARGETS
from hermes.memory.forgetting import find_traces, plan_forget
from hermes.memory.forgetting import forget as forget_it
from hermes.memory.service import MemoryService
from hermes.surfaces.cli.command_context import home_of, with_app
from hermes.surfaces.cli.output import (
    CommandGroup,
    Output,
    columns,
    confirm,
    dry_run_option,
    yes_option,
)

if TYPE_CHECKING:
    from hermes.memory.honcho.settings import HonchoSettings
    from hermes.memory.user_model import UserModels

LINE = 120
UNCHANGED = "Nothing was removed."
NOTHING = "Hermes remembers nothing yet; say “remember that …” in a session."
DAY = len("2026-05-01")

with_memory = with_app.part(lambda app: app.memory)
command = CommandGroup(help="Show, change and erase what Hermes remembers across sessions.")


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


@command.json(
    "Undo the last change of the memory, a given change, or all changes of a session.", with_memory
)
@click.argument("change", metavar="[C1]", required=False)
@click.option("--session", metavar="ID", help="Undo all changes of this session.")
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
    return Output({"undone": undone, "kept": kept}, lines or "This session has changed nothing.")


@command.json(
    "Erase an entry or any text permanently, with every copy in memory, sessions, search index, "
    "logs, recordings and undo."
)
@click.argument("what", metavar="M1|TEXT")
@click.option("--also", metavar="TEXT", multiple=True, help="Also erase this wording (repeatable).")
@dry_run_option
@yes_option
def forget(
    ctx: click.Context, what: str, also: tuple[str, ...], dry_run: bool, yes: bool
) -> Output:
    plan = with_memory(ctx, lambda memory: plan_forget(memory, what, also))
    sessions = with_app(ctx, lambda app: find_traces(app.memory, app.archive, plan))
    if dry_run:
        data = {"texts": plan.texts, "changes": plan.changes, "sessions": sessions}
        lines = [f"would erase   {one_line(text, LINE)}" for text in plan.texts]
        for session_id, numbers in sessions.items():
            lines.append(f"in session    {session_id}: records {', '.join(map(str, numbers))}")
        return Output(data, lines)
    texts = "; ".join(f"“{one_line(text, LINE)}”" for text in plan.texts)
    question = f"Erase {texts} permanently, also in {plural(len(sessions), 'session')}?"
    confirm(question, yes=yes, otherwise=UNCHANGED)
    done = with_app(ctx, lambda app: forget_it(app.memory, app.archive, plan))
    lines = [
        f"Erased: {plural(len(done.entries), 'entry', 'entries')}, "
        f"{plural(done.records, 'record')} of {plural(len(done.sessions), 'session')}, "
        f"{plural(len(done.files), 'other file')}, {plural(done.recordings, 'recording')}, "
        f"{plural(done.contents, 'undo copy', 'undo copies')}.",
        *(f"  changed {path}" for path in done.files),
        *(f"  not erased: {description}" for description in done.left),
    ]
    return Output(done, lines)


@command.json("Empty MEMORY.md, USER.md or both; `hermes memory undo` restores the entries.")
@click.option(
    "--target",
    type=click.Choice(["memory", "user", "all"]),
    default="all",
    help="Empty only this file.",
)
@yes_option
def reset(ctx: click.Context, target: str, yes: bool) -> Output:
    confirm("Remove all entries?", yes=yes, otherwise=UNCHANGED)

    async def clear(memory: MemoryService) -> dict[str, int]:
        memories, source = memory.of(), memory.by_hand("cli")
        return {
            each: await memories.clear(each, source=source)
            for each in TARGETS
            if target in (each, "all")
        }

    counts = with_memory(ctx, clear)
    return Output(counts, f"{plural(sum(counts.values()), 'entry', 'entries')} removed.")


@command.json("List the entries of the memory.", with_memory)
@click.option("--session", metavar="ID", help="List only what came from this session.")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="List all changes, including those that no longer apply.",
)
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
    gone = "This entry no longer exists; `hermes memory why` shows its history."
    return Output(found, gone if found is None else found.text)


@command.json(
    "Show where an entry comes from: who said what and when, and older versions.", with_memory
)
@click.argument("entry", metavar="M1|TEXT")
async def why(memory: MemoryService, entry: str) -> Output:
    found = await memory.why(entry)
    return Output(found, why_lines(found))


@command.json("List what was remembered at the end of a day, or at a time.", with_memory)
@click.argument("date", metavar="DATE")
async def as_of(memory: MemoryService, date: str) -> Output:
    at = parse_date(date)
    if len(date.strip()) == DAY:
        at += 86_399.999999
    found = await memory.of().as_of(at)
    return Output(found, [*map(entry_line, found)] or "Nothing was remembered then.")


@command.json("List all changes, oldest first.", with_memory)
async def log(memory: MemoryService) -> Output:
    found = await memory.of().changes()
    return Output(found, [*map(change_line, found)] or NOTHING)


@command.json("List the changes that need your approval.", with_memory)
async def pending(memory: MemoryService) -> Output:
    found = await memory.of().pending()
    if not found:
        return Output(found, "No changes are pending.")
    first = f"c{found[0].id}"
    advice = f"Use `hermes memory accept {first}` or `hermes memory reject {first}`."
    return Output(found, [*map(change_line, found), advice])


@command.text("Export all changes as JSON lines.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), help="Write the changes to this file."
)
def export(ctx: click.Context, output: str | None) -> None:
    found = with_memory(ctx, lambda memory: memory.of().changes())
    lines = b"".join(encode(columns(change)) + b"\n" for change in found)
    with click.open_file(output or "-", "wb") as file:
        file.write(lines)


PROVIDERS = ("local", "honcho")
STRATEGIES = ("per-directory", "per-repo", "per-session", "global")
MODES = ("hybrid", "context", "tools")
NEXT = "New sessions use Honcho."
NOT_ON = "Honcho is off; `hermes honcho enable` switches it on."

with_user_models = with_memory.part(lambda memory: memory.user_model)
honcho_command = CommandGroup(help="Manage what a Honcho server learns about you.")


@command.text(
    "Choose a user model in addition to the memory files; `local` needs no setup.", name="setup"
)
@click.argument("provider", type=click.Choice(PROVIDERS))
def memory_setup(ctx: click.Context, provider: str) -> Iterator[str]:
    set_from_text(home_of(ctx), "memory.provider", provider)
    yield f"New sessions use {provider}."
    if provider == "honcho":
        yield "Set its key with `hermes config set HONCHO_API_KEY …`, or set HONCHO_BASE_URL."


@command.text("Use only the files MEMORY.md and USER.md.", name="off")
def memory_off(ctx: click.Context) -> str:
    set_from_text(home_of(ctx), "memory.provider", "")
    return "New sessions use only the two files."


@command.json(
    "Show the size of the memory, pending changes and the provider.",
    with_memory,
    name="status",
)
async def memory_status(memory: MemoryService) -> Output:
    state = await memory.status()
    lines = [
        f"{target:8} {part.entries} entries, {part.usage}{'' if part.is_on else '  (off)'}"
        for target, part in state.parts.items()
    ]
    waiting = "all changes" if state.write_approval else "suspicious changes"
    lines += [
        f"pending  {state.pending}; not shown to models: {state.hidden}",
        f"approval {waiting} need approval",
        f"provider {state.provider or 'none'}",
    ]
    return Output(state, lines)


@honcho_command.json("Show whether Honcho is on, its server and its settings.", with_memory)
def status(memory: MemoryService) -> Output:
    is_on = memory.run.settings.memory.provider == "honcho"
    settings = memory.user_model.honcho_settings()
    facts: JsonObject = {
        "enabled": is_on,
        "url": settings.url,
        "key": bool(settings.api_key),
        "workspace": settings.workspace,
        "peers": [settings.peer_name, settings.ai_peer],
        "strategy": settings.session_strategy,
        "session": settings.session_name("(its id)", str(Path.cwd())),
        "mode": settings.recall_mode,
        "context_tokens": settings.context_tokens,
        "dialectic_max_chars": settings.dialectic_max_chars,
        "write_frequency": settings.write_frequency,
    }
    lines = [f"{name.replace('_', ' '):20} {_words(value)}" for name, value in facts.items()]
    return Output(facts, lines if is_on else [*lines, NOT_ON])


@honcho_command.text("Use Honcho in new sessions.")
def enable(ctx: click.Context) -> str:
    set_from_text(home_of(ctx), "memory.provider", "honcho")
    return NEXT


@honcho_command.text("Stop using Honcho; the data on the server stays.")
def disable(ctx: click.Context) -> str:
    set_from_text(home_of(ctx), "memory.provider", "")
    return "New sessions do not use Honcho."


@honcho_command.text(
    "Show or set what Honcho treats as one conversation: a folder, repository, session or all.",
    with_user_models,
)
@click.argument("wanted", type=click.Choice(STRATEGIES), required=False)
def strategy(models: UserModels, wanted: str | None) -> str:
    return str(_set(models, sessionStrategy=wanted).session_strategy)


@honcho_command.text(
    "Show or set how the model gets facts: in its context, by tools, or both.", with_user_models
)
@click.argument("wanted", type=click.Choice(MODES), required=False)
def mode(models: UserModels, wanted: str | None) -> str:
    return str(_set(models, recallMode=wanted).recall_mode)


@honcho_command.text("Show or set your name and the name of the assistant.", with_user_models)
@click.option("--user", metavar="NAME", help="Set your name.")
@click.option("--ai", metavar="NAME", help="Set the name of the assistant.")
def peer(models: UserModels, user: str | None, ai: str | None) -> str:
    settings = _set(models, peerName=user or None, aiPeer=ai or None)
    return f"user {settings.peer_name}\nai   {settings.ai_peer}"


@honcho_command.text("Show or set how much is added to a message.", with_user_models)
@click.option(
    "--context", type=click.IntRange(min=0), help="Limit facts (in tokens) (0: no limit)."
)
@click.option("--dialectic", type=click.IntRange(min=1), help="Limit reasoning (in characters).")
def tokens(models: UserModels, context: int | None, dialectic: int | None) -> str:
    settings = _set(models, dialecticMaxChars=dialectic)
    if context is not None:
        settings = models.set_honcho(contextTokens=context or None)
    limit = "all" if settings.context_tokens is None else f"{settings.context_tokens} tokens"
    return f"context   {limit}\ndialectic {settings.dialectic_max_chars} characters"


@honcho_command.json("Show the facts about the assistant; FILE replaces them, one fact per line.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False), required=False)
def identity(ctx: click.Context, file: str | None) -> Output:
    lines = None
    if file:
        text = Path(file).read_text("utf-8", "replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            raise UsageError(f"{file} is empty; write one fact per line.")
    known = with_user_models(ctx, lambda models: models.honcho_identity(lines))
    return Output(list(known), [f"- {line}" for line in known] or "There are no facts yet.")


@honcho_command.json("List the folders that have a session name.", with_user_models)
def sessions(models: UserModels) -> Output:
    named = _set(models).sessions
    lines = [f"{name:24} {folder}" for folder, name in sorted(named.items())]
    return Output(named, lines or "No folder has a name; `hermes honcho map NAME` names this one.")


@honcho_command.text("Show or set the session name of this folder.", with_user_models)
def map_(models: UserModels, name: str | None = None) -> str:
    here, settings = str(Path.cwd()), _set(models)
    if name:
        settings = _set(models, sessions={**settings.sessions, here: name})
    return settings.session_name("(its id)", here)


def _set(models: UserModels, **changes: JsonValue) -> HonchoSettings:
    """The settings, with those changes that are not None."""
    wanted = {name: value for name, value in changes.items() if value is not None}
    return models.set_honcho(**wanted) if wanted else models.honcho_settings()


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value)
    return "all" if value is None else str(value)
