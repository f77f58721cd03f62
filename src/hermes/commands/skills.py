"""`/skills`, `/bundles`, `/reload-skills`, `/learn`, and a command per skill."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from hermes.commands.registry import Here, Outcome, Sent, Shown, SlashCommand, Suggestion
from hermes.commands.skill_lines import (
    difference,
    listing_lines,
    proposal_line,
    shelf_lines,
    version_lines,
)
from hermes.commands.visible import clean, one_line
from hermes.core.errors import UsageError

if TYPE_CHECKING:
    from hermes.skills.library import Skilled

USAGE = (
    "Use /skills [list|view NAME|search WORDS|history NAME|diff ID|revert NAME ID|pending|"
    "approve ID|reject ID]; `hermes skills` does more."
)
FOUND = 10
LEARN = (
    "Learn from {source}: read it, find the procedure that is worth keeping, and save it as a "
    "skill with skill_manage (steps, pitfalls, verification). If a skill for that kind of task "
    "exists, patch it instead."
)


def _skilled(here: Here) -> Skilled:
    opened = here.session.transcript.opened
    return here.app.skills(opened.cwd if opened else "")


def _platform(here: Here) -> str:
    opened = here.session.transcript.opened
    return opened.source if opened else "cli"


class SkillCommands:
    """`/<name> instruction`: the skill and the instruction become the message."""

    async def run(self, here: Here, line: str) -> Outcome | None:
        called = await _skilled(here).called(line, _platform(here), here.session.id)
        return Sent(text=called.text, origin=called.origin) if called else None

    async def names(self, here: Here) -> Sequence[Suggestion]:
        skilled, platform = _skilled(here), _platform(here)
        off = skilled.here(platform).disabled
        scanned = await asyncio.to_thread(skilled.scan.look)
        skills = [
            Suggestion(text=entry.name, words=one_line(entry.skill.description, 60))
            for entry in scanned.entries
            if entry.name not in off
        ]
        bundles = [
            Suggestion(text=each.name, words=one_line(each.description, 60))
            for each in skilled.bundles.all()
        ]
        return (*skills, *bundles)


async def skills(here: Here, argument: str) -> Outcome:
    try:
        words = shlex.split(argument)
    except ValueError as error:
        raise UsageError(f"{USAGE} ({error})") from error
    verb, rest = (words[0], words[1:]) if words else ("list", [])
    if verb not in _VERBS:
        raise UsageError(USAGE)
    return Shown(text=clean(await _VERBS[verb](here, _skilled(here), rest)))


async def _list(here: Here, skilled: Skilled, rest: Sequence[str]) -> str:
    scanned = await asyncio.to_thread(skilled.scan.look)
    off = skilled.here(_platform(here)).disabled
    return "\n".join(shelf_lines(scanned, off)) or "There are no skills yet."


async def _view(here: Here, skilled: Skilled, rest: Sequence[str]) -> str:
    from pathlib import Path

    entry = skilled.shelf.find(_one(rest))
    return await asyncio.to_thread((Path(entry.folder) / "SKILL.md").read_text, "utf-8")


async def _search(here: Here, skilled: Skilled, rest: Sequence[str]) -> str:
    found, problems = await skilled.hub.search(" ".join(rest), limit=FOUND)
    lines = [*listing_lines(found), *(f"({each})" for each in problems)]
    return "\n".join((*lines, "`hermes skills install ID` installs one.")) if lines else "Nothing."


async def _history(here: Here, skilled: Skilled, rest: Sequence[str]) -> str:
    versions = await asyncio.to_thread(skilled.shelf.history, _one(rest))
    return "\n".join(version_lines(versions)) or "It has not been changed."


async def _pending(here: Here, skilled: Skilled, rest: Sequence[str]) -> str:
    waiting = await asyncio.to_thread(skilled.shelf.proposals)
    return "\n".join(map(proposal_line, waiting)) or "Nothing waits."


async def _diff(here: Here, skilled: Skilled, rest: Sequence[str]) -> str:
    version = skilled.shelf.proposal(_one(rest))
    return await asyncio.to_thread(difference, skilled.shelf, version)


async def _approve(here: Here, skilled: Skilled, rest: Sequence[str]) -> str:
    version = skilled.shelf.proposal(_one(rest))
    done = await asyncio.to_thread(skilled.approve, version)
    return f"{done.name} is now at {done.id}."


async def _reject(here: Here, skilled: Skilled, rest: Sequence[str]) -> str:
    version = skilled.shelf.proposal(_one(rest[:1]))
    reason = " ".join(rest[1:]) or "rejected by the person"
    await asyncio.to_thread(skilled.shelf.refuse, version, reason)
    return f"{version.id} will not be used."


async def _revert(here: Here, skilled: Skilled, rest: Sequence[str]) -> str:
    if len(rest) != 2:
        raise UsageError("Use /skills revert NAME ID; /skills history NAME lists the ids.")
    done = await asyncio.to_thread(skilled.revert, rest[0], rest[1])
    return f"{done.name} is reverted; this is version {done.id}."


def _one(rest: Sequence[str]) -> str:
    if len(rest) != 1:
        raise UsageError(USAGE)
    return rest[0]


_VERBS: dict[str, Callable[[Here, Skilled, Sequence[str]], Awaitable[str]]] = {
    "list": _list,
    "view": _view,
    "search": _search,
    "history": _history,
    "pending": _pending,
    "diff": _diff,
    "approve": _approve,
    "reject": _reject,
    "revert": _revert,
}


async def complete_skills(here: Here, argument: str) -> Sequence[Suggestion]:
    if " " in argument:
        return ()
    return [
        Suggestion(text=verb, replaces=len(argument))
        for verb in _VERBS
        if verb.startswith(argument)
    ]


async def bundles(here: Here, argument: str) -> Outcome:
    found = await asyncio.to_thread(_skilled(here).bundles.all)
    lines = [
        f"/{each.name}  {one_line(each.description)} ({', '.join(each.skills)})" for each in found
    ]
    return Shown(text="\n".join(lines) or "No bundles; `hermes bundles create` makes one.")


async def reload_skills(here: Here, argument: str) -> Outcome:
    scanned = await asyncio.to_thread(_skilled(here).scan.look)
    lines = [f"{len(scanned.entries)} skills; new ones show in the prompt of the next session."]
    lines += [f"⚠ {each.folder}: {each.problem}" for each in scanned.broken]
    return Shown(text=clean("\n".join(lines)))


async def learn(here: Here, argument: str) -> Outcome:
    if not argument:
        raise UsageError("Use /learn SOURCE: a file, a folder, an address, or “this session”.")
    return Sent(text=LEARN.format(source=argument))


SKILL_COMMANDS = (
    SlashCommand(
        "skills",
        "List, search, approve and revert skills; /NAME uses one.",
        skills,
        arguments="[list|view|search|history|pending|…]",
        category="tools",
        complete=complete_skills,
    ),
    SlashCommand("bundles", "List skill bundles.", bundles, category="tools"),
    SlashCommand("reload-skills", "Reload the skills.", reload_skills, category="tools"),
    SlashCommand(
        "learn", "Create a skill from a source.", learn, arguments="source", category="tools"
    ),
)
