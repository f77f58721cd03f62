"""`/rollback` reverts file changes of the agent; `/snapshot` saves settings, keys and sessions."""

from __future__ import annotations

import asyncio
import posixpath
import shlex
import time
from typing import TYPE_CHECKING

from hermes.codec.values import Value
from hermes.commands.formatting import one_line, sanitize
from hermes.commands.registry import CommandContext, Outcome, ShowText, SlashCommand
from hermes.commands.tuning import choices
from hermes.core.commands import Rewind
from hermes.core.errors import NotFound, UsageError
from hermes.core.events import Record, Rewound, TurnStarted
from hermes.homes.backup import SnapshotInfo as Backup
from hermes.homes.backup import list_snapshots, prune_snapshots, snapshot
from hermes.undo.service import make_undo_service

if TYPE_CHECKING:
    from hermes.undo.history import Checkpoint
    from hermes.undo.plan import KeptPath, RestorePlan
    from hermes.undo.restore import RestoreResult

SHOWN_CHANGES = 20
ROLLBACK_USAGE = (
    "Use /rollback N, /rollback --to TURN, /rollback diff N or /rollback N FILE; --preview."
)


class RollbackArguments(Value):
    """The parsed arguments of `/rollback`."""

    number: int = 0
    turn: str = ""
    path: str = ""
    preview: bool = False
    diff: bool = False
    overwrite: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.number or self.turn or self.path or self.preview)


def parse_arguments(argument: str) -> RollbackArguments:
    try:
        words = shlex.split(argument)
    except ValueError as error:
        raise UsageError(f"{ROLLBACK_USAGE} ({error})") from error
    number, turn, path = 0, "", ""
    flags = {"--preview", "--overwrite", "diff"}
    given = {word for word in words if word in flags}
    rest = [word for word in words if word not in flags]
    while rest:
        word = rest.pop(0)
        if word == "--to" and rest:
            turn = rest.pop(0)
        elif word.isdecimal() and not number and int(word):
            number = int(word)
        elif not path and not word.startswith("-"):
            path = word
        else:
            raise UsageError(ROLLBACK_USAGE)
    return RollbackArguments(
        number=number,
        turn=turn,
        path=path,
        preview="--preview" in given,
        diff="diff" in given,
        overwrite="--overwrite" in given,
    )


async def rollback(here: CommandContext, argument: str) -> Outcome:
    wish = parse_arguments(argument)
    undo = make_undo_service(here.app.run)
    session = here.session.id
    if wish.is_empty:
        listed = await undo.checkpoints(session)
        return ShowText(text=listing(listed, here.app.run.world.clock.now()))
    if here.session.busy:
        raise UsageError("A turn is running; interrupt it first.")
    root = _root(here)
    path = posixpath.normpath(posixpath.join(root, wish.path)) if wish.path else ""
    plan = await undo.plan(
        session, number=wish.number, turn=wish.turn, path=path, overwrite=wish.overwrite
    )
    if wish.diff:
        text = await undo.differences(plan, root)
        return ShowText(text=sanitize(text).rstrip() or "No text file would change.")
    if wish.preview:
        return ShowText(text=preview_lines(plan, root))
    done = await undo.restore(plan, session=session, whole=not path)
    text = result_lines(done, root)
    turns = 0 if path else turns_back(await here.app.archive.records(session), plan.turns)
    if turns:
        await here.session.send(Rewind(turns=turns))
        count = "turn is" if turns == 1 else f"{turns} turns are"
        text += f"\nThe last {count} removed from the conversation."
    return ShowText(text=text)


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


def listing(listed: tuple[Checkpoint, ...], now: float) -> str:
    if not listed:
        return "This session has changed no files."
    lines = [line_of(each, now) for each in listed[:SHOWN_CHANGES]]
    if len(listed) > SHOWN_CHANGES:
        lines.append(f"… and {len(listed) - SHOWN_CHANGES} older ones")
    return "\n".join((*lines, ROLLBACK_USAGE))


def line_of(each: Checkpoint, now: float) -> str:
    state = "  (undone)" if each.undone else ""
    counts = f"+{each.created} ~{each.changed} -{each.deleted}"
    return (
        f"{each.number:3}  {age(now - each.at):>7}  {counts:14} {one_line(each.words, 60)}{state}"
    )


def age(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit} ago"
    return "now"


def preview_lines(plan: RestorePlan, root: str) -> str:
    if not plan.steps and not plan.kept:
        return "Nothing would change."
    verbs = {"delete": "would delete", "restore": "would restore", "change back": "would restore"}
    lines = [f"{verbs[step.verb]:15}{_short(step.path, root)}" for step in plan.steps]
    return "\n".join((*_cut(lines), *_rest(plan.kept, plan.lost, plan.notes, root)))


def result_lines(done: RestoreResult, root: str) -> str:
    lines = [f"restored       {_short(path, root)}" for path in done.restored]
    lines += [f"deleted        {_short(path, root)}" for path in done.deleted]
    head = f"{len(done.restored)} restored, {len(done.deleted)} deleted, {len(done.kept)} kept."
    return "\n".join((head, *_cut(lines), *_rest(done.kept, done.lost, done.notes, root)))


def _rest(
    kept: tuple[KeptPath, ...], lost: tuple[str, ...], notes: tuple[str, ...], root: str
) -> list[str]:
    stays = _cut([f"stays          {_short(each.path, root)}: {each.why}" for each in kept])
    gone = _cut([f"not restored   {_short(each, root)}" for each in lost])
    return [*stays, *gone, *_cut([f"not covered    {_short(each, root)}" for each in notes])]


def _cut(lines: list[str]) -> list[str]:
    if len(lines) <= SHOWN_CHANGES:
        return lines
    return [*lines[:SHOWN_CHANGES], f"… and {len(lines) - SHOWN_CHANGES} more"]


def _short(path: str, root: str) -> str:
    return one_line(path.replace(root.rstrip("/") + "/", ""))


def _root(here: CommandContext) -> str:
    opened = here.session.transcript.opened
    return opened.cwd if opened and opened.cwd else "/"


ROLLBACK_COMMANDS = (
    SlashCommand(
        "rollback",
        "Revert file changes; without arguments: list them.",
        rollback,
        arguments="[n|--to turn] [file] [--preview]",
    ),
)


SHOWN_SNAPSHOTS = 20


async def snapshot_command(here: CommandContext, argument: str) -> Outcome:
    verb, _, rest = argument.partition(" ")
    rest = rest.strip()
    match verb:
        case "":
            return ShowText(text=await _list_snapshots(here))
        case "create":
            made = await asyncio.to_thread(
                snapshot, here.app.run.home, here.app.run.world.clock.now(), label=rest
            )
            return ShowText(text=f"{made.files} files are in {made.file}; it holds your keys.")
        case "restore":
            return ShowText(text=await _restore_help(here, rest))
        case "prune" if rest == "" or rest.isdecimal():
            gone = await asyncio.to_thread(
                prune_snapshots, here.app.run.home, keep=int(rest or SHOWN_SNAPSHOTS)
            )
            return ShowText(text=f"{gone} snapshot{'s' * (gone != 1)} removed.")
    raise UsageError("Use /snapshot [create [label]|restore N|prune [how many to keep]].")


async def _list_snapshots(here: CommandContext) -> str:
    found = await asyncio.to_thread(list_snapshots, here.app.run.home)
    if not found:
        return "There are no snapshots; create one with /snapshot create."
    lines = [
        f"{n:2}  {_when(each)}  {each.name}"
        for n, each in enumerate(found[:SHOWN_SNAPSHOTS], start=1)
    ]
    return "\n".join((*lines, "/snapshot restore N explains how to restore one."))


async def _restore_help(here: CommandContext, wanted: str) -> str:
    """Explains how to restore, because files cannot be restored under an open session."""
    found = await asyncio.to_thread(list_snapshots, here.app.run.home)
    named = [each for n, each in enumerate(found, start=1) if wanted in (str(n), each.name)]
    if not named:
        raise NotFound(f"There is no snapshot {wanted!r}; /snapshot lists them.")
    return (
        "Files cannot be restored while this session is open. /quit, then run:\n"
        f"  hermes import {named[0].file}\nWhat it replaces is backed up first."
    )


def _when(each: Backup) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(each.at))


SNAPSHOT_COMMANDS = (
    SlashCommand(
        "snapshot",
        "Save settings, keys and sessions as a snapshot.",
        snapshot_command,
        arguments="[create [label]|restore n|prune [n]]",
        surfaces=("cli",),
        complete=choices("create", "restore", "prune"),
    ),
)
