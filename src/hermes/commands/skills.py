"""`/skills`, `/bundles`, `/reload-skills`, `/learn`, and a command per skill."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from hermes.commands.registry import (
    CommandContext,
    Outcome,
    SendMessage,
    ShowText,
    SlashCommand,
    Suggestion,
)
from hermes.commands.skill_lines import (
    difference,
    listing_lines,
    proposal_line,
    skill_list_lines,
    version_lines,
)
from hermes.commands.visible import one_line, sanitize
from hermes.core.errors import UsageError

if TYPE_CHECKING:
    from hermes.skills.library import SkillLibrary

SKILLS_USAGE = (
    "Use /skills [list|view NAME|search WORDS|history NAME|diff ID|revert NAME ID|pending|"
    "approve ID|reject ID]; `hermes skills` does more."
)
MAX_FOUND = 10
LEARN = (
    "Learn from {source}: read it, find the procedure that is worth keeping, and save it as a "
    "skill with skill_manage (steps, pitfalls, verification). If a skill for that kind of task "
    "exists, patch it instead."
)


def _skill_service(here: CommandContext) -> SkillLibrary:
    opened = here.session.transcript.opened
    return here.app.skills(opened.cwd if opened else "")


def _platform(here: CommandContext) -> str:
    opened = here.session.transcript.opened
    return opened.source if opened else "cli"


class SkillCommands:
    """`/<name> instruction`: the skill and the instruction become the message."""

    async def run(self, here: CommandContext, line: str) -> Outcome | None:
        called = await _skill_service(here).expand_call(line, _platform(here), here.session.id)
        return SendMessage(text=called.text, origin=called.origin) if called else None

    async def names(self, here: CommandContext) -> Sequence[Suggestion]:
        skilled, platform = _skill_service(here), _platform(here)
        off = skilled.here(platform).disabled
        scanned = await asyncio.to_thread(skilled.scan.scan)
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


async def skills(here: CommandContext, argument: str) -> Outcome:
    try:
        words = shlex.split(argument)
    except ValueError as error:
        raise UsageError(f"{SKILLS_USAGE} ({error})") from error
    verb, rest = (words[0], words[1:]) if words else ("list", [])
    if verb not in _VERBS:
        raise UsageError(SKILLS_USAGE)
    return ShowText(text=sanitize(await _VERBS[verb](here, _skill_service(here), rest)))


async def _list(here: CommandContext, skilled: SkillLibrary, rest: Sequence[str]) -> str:
    scanned = await asyncio.to_thread(skilled.scan.scan)
    off = skilled.here(_platform(here)).disabled
    return "\n".join(skill_list_lines(scanned, off)) or "There are no skills yet."


async def _view(here: CommandContext, skilled: SkillLibrary, rest: Sequence[str]) -> str:
    from pathlib import Path

    entry = skilled.shelf.find(_one(rest))
    return await asyncio.to_thread((Path(entry.folder) / "SKILL.md").read_text, "utf-8")


async def _search(here: CommandContext, skilled: SkillLibrary, rest: Sequence[str]) -> str:
    found, problems = await skilled.hub.search(" ".join(rest), limit=MAX_FOUND)
    lines = [*listing_lines(found), *(f"({each})" for each in problems)]
    return "\n".join((*lines, "`hermes skills install ID` installs one.")) if lines else "Nothing."


async def _history(here: CommandContext, skilled: SkillLibrary, rest: Sequence[str]) -> str:
    versions = await asyncio.to_thread(skilled.shelf.history, _one(rest))
    return "\n".join(version_lines(versions)) or "It has not been changed."


async def _pending(here: CommandContext, skilled: SkillLibrary, rest: Sequence[str]) -> str:
    waiting = await asyncio.to_thread(skilled.shelf.proposals)
    return "\n".join(map(proposal_line, waiting)) or "Nothing waits."


async def _diff(here: CommandContext, skilled: SkillLibrary, rest: Sequence[str]) -> str:
    version = skilled.shelf.proposal(_one(rest))
    return await asyncio.to_thread(difference, skilled.shelf, version)


async def _approve(here: CommandContext, skilled: SkillLibrary, rest: Sequence[str]) -> str:
    version = skilled.shelf.proposal(_one(rest))
    done = await asyncio.to_thread(skilled.approve, version)
    return f"{done.name} is now at {done.id}."


async def _reject(here: CommandContext, skilled: SkillLibrary, rest: Sequence[str]) -> str:
    version = skilled.shelf.proposal(_one(rest[:1]))
    reason = " ".join(rest[1:]) or "rejected by the person"
    await asyncio.to_thread(skilled.shelf.refuse, version, reason)
    return f"{version.id} will not be used."


async def _revert(here: CommandContext, skilled: SkillLibrary, rest: Sequence[str]) -> str:
    if len(rest) != 2:
        raise UsageError("Use /skills revert NAME ID; /skills history NAME lists the ids.")
    done = await asyncio.to_thread(skilled.revert, rest[0], rest[1])
    return f"{done.name} is reverted; this is version {done.id}."


def _one(rest: Sequence[str]) -> str:
    if len(rest) != 1:
        raise UsageError(SKILLS_USAGE)
    return rest[0]


_VERBS: dict[str, Callable[[CommandContext, SkillLibrary, Sequence[str]], Awaitable[str]]] = {
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


async def complete_skills(here: CommandContext, argument: str) -> Sequence[Suggestion]:
    if " " in argument:
        return ()
    return [
        Suggestion(text=verb, replaces=len(argument))
        for verb in _VERBS
        if verb.startswith(argument)
    ]


async def bundles(here: CommandContext, argument: str) -> Outcome:
    found = await asyncio.to_thread(_skill_service(here).bundles.all)
    lines = [
        f"/{each.name}  {one_line(each.description)} ({', '.join(each.skills)})" for each in found
    ]
    return ShowText(text="\n".join(lines) or "No bundles; `hermes bundles create` makes one.")


async def reload_skills(here: CommandContext, argument: str) -> Outcome:
    scanned = await asyncio.to_thread(_skill_service(here).scan.scan)
    lines = [f"{len(scanned.entries)} skills; new ones show in the prompt of the next session."]
    lines += [f"⚠ {each.folder}: {each.problem}" for each in scanned.broken]
    return ShowText(text=sanitize("\n".join(lines)))


async def learn(here: CommandContext, argument: str) -> Outcome:
    if not argument:
        raise UsageError("Use /learn SOURCE: a file, a folder, an address, or “this session”.")
    return SendMessage(text=LEARN.format(source=argument))


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
