"""`/snapshot`: creates, lists and removes snapshots of settings, keys and sessions."""

from __future__ import annotations

import asyncio
import time

from hermes.commands.registry import CommandContext, Outcome, ShowText, SlashCommand
from hermes.commands.tuning import choices
from hermes.core.errors import NotFound, UsageError
from hermes.homes.backup import SnapshotInfo as Backup
from hermes.homes.backup import list_snapshots, prune_snapshots, snapshot

SHOWN_SNAPSHOTS = 20


async def snapshot_command(here: CommandContext, argument: str) -> Outcome:
    verb, _, rest = argument.partition(" ")
    rest = rest.strip()
    match verb:
        case "":
            return ShowText(text=await _list_snapshots(here))
        case "create":
            made = await asyncio.to_thread(
                snapshot, here.app.home, here.app.world.clock.now(), label=rest
            )
            return ShowText(text=f"{made.files} files are in {made.file}; it holds your keys.")
        case "restore":
            return ShowText(text=await _restore_help(here, rest))
        case "prune" if rest == "" or rest.isdecimal():
            gone = await asyncio.to_thread(
                prune_snapshots, here.app.home, keep=int(rest or SHOWN_SNAPSHOTS)
            )
            return ShowText(text=f"{gone} snapshot{'s' * (gone != 1)} removed.")
    raise UsageError("Use /snapshot [create [label]|restore N|prune [how many to keep]].")


async def _list_snapshots(here: CommandContext) -> str:
    found = await asyncio.to_thread(list_snapshots, here.app.home)
    if not found:
        return "There are no snapshots; create one with /snapshot create."
    lines = [
        f"{n:2}  {_when(each)}  {each.name}"
        for n, each in enumerate(found[:SHOWN_SNAPSHOTS], start=1)
    ]
    return "\n".join((*lines, "/snapshot restore N explains how to restore one."))


async def _restore_help(here: CommandContext, wanted: str) -> str:
    """Explains how to restore, because files cannot be restored under an open session."""
    found = await asyncio.to_thread(list_snapshots, here.app.home)
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
