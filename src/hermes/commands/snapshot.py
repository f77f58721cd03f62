"""`/snapshot`: creates, lists and removes snapshots of settings, keys and sessions."""

from __future__ import annotations

import asyncio
import time

from hermes.commands.registry import Here, Outcome, Shown, SlashCommand
from hermes.commands.tuning import choices
from hermes.core.errors import NotFound, UsageError
from hermes.homes.backup import Kept as Backup
from hermes.homes.backup import kept_snapshots, prune_snapshots, snapshot

SHOWN = 20


async def run(here: Here, argument: str) -> Outcome:
    verb, _, rest = argument.partition(" ")
    rest = rest.strip()
    match verb:
        case "":
            return Shown(text=await _listed(here))
        case "create":
            made = await asyncio.to_thread(
                snapshot, here.app.home, here.app.world.clock.now(), label=rest
            )
            return Shown(text=f"{made.files} files are in {made.file}; it holds your keys.")
        case "restore":
            return Shown(text=await _way_back(here, rest))
        case "prune" if rest == "" or rest.isdecimal():
            gone = await asyncio.to_thread(prune_snapshots, here.app.home, keep=int(rest or SHOWN))
            return Shown(text=f"{gone} snapshot{'s' * (gone != 1)} removed.")
    raise UsageError("Use /snapshot [create [label]|restore N|prune [how many to keep]].")


async def _listed(here: Here) -> str:
    found = await asyncio.to_thread(kept_snapshots, here.app.home)
    if not found:
        return "There are no snapshots; create one with /snapshot create."
    lines = [f"{n:2}  {_when(each)}  {each.name}" for n, each in enumerate(found[:SHOWN], start=1)]
    return "\n".join((*lines, "/snapshot restore N explains how to restore one."))


async def _way_back(here: Here, wanted: str) -> str:
    """Explains how to restore, because files cannot be restored under an open session."""
    found = await asyncio.to_thread(kept_snapshots, here.app.home)
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
        run,
        arguments="[create [label]|restore n|prune [n]]",
        surfaces=("cli",),
        complete=choices("create", "restore", "prune"),
    ),
)
