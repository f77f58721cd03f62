"""`/rollback` undoes file changes of the agent; `/snapshot` saves settings, keys and sessions."""

from __future__ import annotations

import asyncio
import posixpath
import shlex
from typing import TYPE_CHECKING

from hermes.commands.formatting import format_age, format_time, one_line, plural, sanitize
from hermes.commands.history import BUSY
from hermes.commands.registry import CommandContext, SlashCommand
from hermes.core.commands import Rewind
from hermes.core.errors import NotFound, UsageError
from hermes.core.events import Record, Rewound, TurnStarted
from hermes.homes.backup import list_snapshots, prune_snapshots, snapshot
from hermes.undo.workspace import UndoService

if TYPE_CHECKING:
    from hermes.undo.history import Checkpoint
    from hermes.undo.plan import KeptPath, RestorePlan
    from hermes.undo.restore import RestoreResult

SHOWN_CHANGES = 20
ROLLBACK_USAGE = (
    "Use /rollback N, /rollback --to TURN, /rollback N FILE or /rollback diff N; --preview only "
    "shows what would change, --overwrite also restores files that you changed since."
)
FLAGS = ("diff", "--preview", "--overwrite")


def parse_arguments(argument: str) -> tuple[int, str, str, set[str]]:
    """The number, the turn and the path, if given, and the flags."""
    try:
        arguments = shlex.split(argument)
    except ValueError as error:
        raise UsageError(f"{ROLLBACK_USAGE} ({error})") from error
    number, turn, path, flags = 0, "", "", set()
    rest = iter(arguments)
    for word in rest:
        if word in FLAGS:
            flags.add(word)
        elif word == "--to" and (following := next(rest, "")):
            turn = following
        elif word.isdecimal() and not number and int(word):
            number = int(word)
        elif not path and not word.startswith("-"):
            path = word
        else:
            raise UsageError(ROLLBACK_USAGE)
    return number, turn, path, flags


async def rollback(here: CommandContext, argument: str) -> str:
    number, turn, file, flags = parse_arguments(argument)
    undo, session = UndoService(here.app.context), here.session.id
    if not (number or turn or file or "--preview" in flags):
        checkpoints = await undo.in_thread(lambda history: history.checkpoints(session))
        return listing(checkpoints, here.app.context.world.clock.now())
    if here.session.busy:
        raise UsageError(BUSY)
    opened = here.session.transcript.opened
    root = opened.cwd if opened and opened.cwd else "/"
    path = posixpath.normpath(posixpath.join(root, file)) if file else ""
    plan = await undo.in_thread(
        lambda history: history.plan(
            session, number=number, turn=turn, path=path, overwrite="--overwrite" in flags
        )
    )
    if "diff" in flags:
        text = await undo.in_thread(lambda history: history.diff(plan, root))
        return sanitize(text).rstrip() or "No text file would change."
    if "--preview" in flags:
        return preview_lines(plan, root)
    done = await undo.in_thread(
        lambda history: history.restore(plan, session=session, whole=not path)
    )
    text = result_lines(done, root)
    turns = 0 if path else turns_back(await here.app.archive.records(session), plan.turns)
    if turns:
        await here.session.send(Rewind(turns=turns))
        text += f"\n{plural(turns, 'turn')} removed from the end of the conversation."
    return text


def turns_back(records: tuple[Record, ...], taken: tuple[str, ...]) -> int:
    """The number of turns to remove, so that the conversation matches the files."""
    seen: list[str] = []
    for record in records:
        match record.event:
            case TurnStarted():
                seen.append(record.turn_id)
            case Rewound(turns=turns):
                del seen[len(seen) - min(turns, len(seen)) :]
            case _:
                pass
    found = [seen.index(turn) for turn in taken if turn in seen]
    return len(seen) - min(found) if found else 0


def listing(checkpoints: tuple[Checkpoint, ...], now: float) -> str:
    if not checkpoints:
        return "This session has changed no files."
    lines = _cut([line_of(each, now) for each in checkpoints], "older ones")
    return "\n".join((*lines, ROLLBACK_USAGE))


def line_of(each: Checkpoint, now: float) -> str:
    state = "  (undone)" if each.undone else ""
    counts = f"+{each.created} ~{each.changed} -{each.deleted}"
    age, summary = format_age(now - each.at), one_line(each.words, 60)
    return f"{each.number:3}  {age:>7}  {counts:14} {summary}{state}"


def preview_lines(plan: RestorePlan, root: str) -> str:
    if not plan.steps and not plan.kept:
        return "Nothing would change."
    lines = [
        f"{'would delete' if step.target is None else 'would restore':15}{_short(step.path, root)}"
        for step in plan.steps
    ]
    return "\n".join((*_cut(lines), *_rest(plan.kept, plan.lost, plan.notes, root)))


def result_lines(done: RestoreResult, root: str) -> str:
    lines = [f"restored       {_short(path, root)}" for path in done.restored]
    lines += [f"deleted        {_short(path, root)}" for path in done.deleted]
    again = " A part failed; undo again to restore the rest." if done.is_partial else ""
    counts = f"{len(done.restored)} restored, {len(done.deleted)} deleted, {len(done.kept)} kept."
    return "\n".join((counts + again, *_cut(lines), *_rest(done.kept, done.lost, done.notes, root)))


def _rest(
    kept: tuple[KeptPath, ...], lost: tuple[str, ...], notes: tuple[str, ...], root: str
) -> list[str]:
    stays = _cut([f"stays          {_short(each.path, root)}: {each.why}" for each in kept])
    gone = _cut([f"not restored   {_short(each, root)}" for each in lost])
    return [*stays, *gone, *_cut([f"not covered    {_short(each, root)}" for each in notes])]


def _cut(lines: list[str], rest: str = "more") -> list[str]:
    if len(lines) <= SHOWN_CHANGES:
        return lines
    return [*lines[:SHOWN_CHANGES], f"… and {len(lines) - SHOWN_CHANGES} {rest}"]


def _short(path: str, root: str) -> str:
    return one_line(path.replace(root.rstrip("/") + "/", ""))


SHOWN_SNAPSHOTS = 20


async def snapshot_command(here: CommandContext, argument: str) -> str | None:
    verb, _, rest = argument.partition(" ")
    home, rest = here.app.context.home, rest.strip()
    match verb:
        case "":
            snapshots = await asyncio.to_thread(list_snapshots, home)
            lines = [
                f"{n:2}  {format_time(each.at)[:-3]}  {each.name}"
                for n, each in enumerate(snapshots[:SHOWN_SNAPSHOTS], start=1)
            ]
            if not lines:
                return "There are no snapshots; create one with /snapshot create."
            return "\n".join((*lines, "/snapshot restore N explains how to restore one."))
        case "create":
            now = here.app.context.world.clock.now()
            made = await asyncio.to_thread(snapshot, home, now, label=rest)
            return f"{made.file} contains {plural(made.files, 'file')}, including your keys."
        case "restore":
            snapshots = await asyncio.to_thread(list_snapshots, home)
            named = [each for n, each in enumerate(snapshots, 1) if rest in (str(n), each.name)]
            if not named:
                raise NotFound(f"There is no snapshot {rest!r}; see /snapshot.")
            return (
                "A snapshot cannot be restored while this session is open. Quit, then run:\n"
                f"  hermes import {named[0].file}\nIt backs up the files that it replaces."
            )
        case "prune" if rest == "" or rest.isdecimal():
            keep = int(rest or SHOWN_SNAPSHOTS)
            count = await asyncio.to_thread(prune_snapshots, home, keep=keep)
            return f"{plural(count, 'snapshot')} removed."
    return None


ROLLBACK_COMMANDS = (
    SlashCommand(
        "rollback [N|--to TURN] [FILE] [--preview]",
        "Undo file changes of the agent; without arguments, list them.",
        rollback,
    ),
    SlashCommand(
        "snapshot [create [LABEL]|restore N|prune [KEEP]]",
        "List, create and delete snapshots of settings, keys and sessions.",
        snapshot_command,
        surfaces=("cli",),
    ),
)
