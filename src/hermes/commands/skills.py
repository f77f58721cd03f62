"""Skill commands (/skills, /bundles, /learn, /curator), one command per skill, and their text."""

from __future__ import annotations

import asyncio
import difflib
import shlex
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from hermes.commands.formatting import one_line, sanitize
from hermes.commands.registry import (
    CommandContext,
    Outcome,
    SendMessage,
    ShowText,
    SlashCommand,
    Suggestion,
)
from hermes.commands.tuning import choices
from hermes.core.errors import UsageError

if TYPE_CHECKING:
    from hermes.skills.catalogue import SkillScan
    from hermes.skills.curator import Curator, Move
    from hermes.skills.history import Version
    from hermes.skills.hub.source import SkillListing
    from hermes.skills.library import SkillLibrary
    from hermes.skills.store import SkillStore

MAX_DESCRIPTION = 70
# Separates the user's text from the skills that it invokes.
SKILLS_MARKER = "[The person calls for the skills below. Follow them.]"


def user_text(text: str) -> str:
    """The user's text of a message with skills."""
    before, found, _ = text.partition(f"\n\n{SKILLS_MARKER}\n")
    return before if found and before.startswith("/") else text


def skill_list_lines(scanned: SkillScan, disabled: Collection[str]) -> list[str]:
    """Lines by category; disabled skills are marked."""
    lines: list[str] = []
    category = None
    for entry in scanned.entries:
        if entry.category != category:
            category = entry.category
            lines.append(category or "general")
        off = " (off)" if entry.name in disabled else ""
        where = "" if entry.kind == "home" else f" [{entry.kind}]"
        lines.append(
            f"  {entry.name:<24} {one_line(entry.skill.description, MAX_DESCRIPTION)}{where}{off}"
        )
    return [*lines, *(f"⚠ {each.folder}: {each.problem}" for each in scanned.broken)]


def listing_lines(found: Sequence[SkillListing]) -> list[str]:
    return [
        f"{each.identifier}  [{each.trust}]\n    {one_line(each.description, MAX_DESCRIPTION)}"
        for each in found
    ]


def version_lines(versions: Iterable[Version]) -> list[str]:
    """Versions, newest first."""
    return [version_line(each) for each in reversed(tuple(versions))]


def version_line(version: Version) -> str:
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(version.at))
    cause = version.cause
    by = " ".join(word for word in (cause.who, cause.model, cause.session) if word)
    reason = f" ({version.reason})" if version.reason else ""
    return f"{version.id}  {day}  {version.state:<9} {version.action}, by {by}{reason}"


def proposal_line(version: Version) -> str:
    return f"{version.id}  {version.name}: {version.action}, by {version.cause.who}"


def difference(store: SkillStore, version: Version, other: Version | None = None) -> str:
    """The diff of a version against another, or against its parent."""
    before = other or next(
        (one for one in store.history(version.name) if one.hash and one.hash == version.base), None
    )
    old = store.tree(before) if before is not None else {}
    return tree_difference(old, store.tree(version))


def tree_difference(old: dict[str, bytes], new: dict[str, bytes]) -> str:
    lines: list[str] = []
    for name in sorted({*old, *new}):
        if old.get(name) == new.get(name):
            continue
        first, second = _rows(old.get(name)), _rows(new.get(name))
        if first is None or second is None:
            lines.append(f"{name}: other bytes")
            continue
        lines += difflib.unified_diff(first, second, f"a/{name}", f"b/{name}", lineterm="")
    return "\n".join(lines) or "No difference."


def _rows(data: bytes | None) -> list[str] | None:
    """None for binary data."""
    try:
        return (data or b"").decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return None


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

    entry = skilled.store.find(_one(rest))
    return await asyncio.to_thread((Path(entry.folder) / "SKILL.md").read_text, "utf-8")


async def _search(here: CommandContext, skilled: SkillLibrary, rest: Sequence[str]) -> str:
    found, problems = await skilled.hub.search(" ".join(rest), limit=MAX_FOUND)
    lines = [*listing_lines(found), *(f"({each})" for each in problems)]
    return "\n".join((*lines, "`hermes skills install ID` installs one.")) if lines else "Nothing."


async def _history(here: CommandContext, skilled: SkillLibrary, rest: Sequence[str]) -> str:
    versions = await asyncio.to_thread(skilled.store.history, _one(rest))
    return "\n".join(version_lines(versions)) or "It has not been changed."


async def _pending(here: CommandContext, skilled: SkillLibrary, rest: Sequence[str]) -> str:
    waiting = await asyncio.to_thread(skilled.store.proposals)
    return "\n".join(map(proposal_line, waiting)) or "Nothing waits."


async def _diff(here: CommandContext, skilled: SkillLibrary, rest: Sequence[str]) -> str:
    version = skilled.store.proposal(_one(rest))
    return await asyncio.to_thread(difference, skilled.store, version)


async def _approve(here: CommandContext, skilled: SkillLibrary, rest: Sequence[str]) -> str:
    version = skilled.store.proposal(_one(rest))
    done = await asyncio.to_thread(skilled.approve, version)
    return f"{done.name} is now at {done.id}."


async def _reject(here: CommandContext, skilled: SkillLibrary, rest: Sequence[str]) -> str:
    version = skilled.store.proposal(_one(rest[:1]))
    reason = " ".join(rest[1:]) or "rejected by the person"
    await asyncio.to_thread(skilled.store.refuse, version, reason)
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


CURATOR_VERBS = ("status", "run", "pause", "resume")


async def curator(here: CommandContext, argument: str) -> Outcome:
    verb = argument or CURATOR_VERBS[0]
    if verb not in CURATOR_VERBS:
        raise UsageError(f"Use /curator [{'|'.join(CURATOR_VERBS)}]; `hermes curator` does more.")
    work = here.app.skills().curator()
    return ShowText(text=await asyncio.to_thread(_done, work, verb))


def _done(work: Curator, verb: str) -> str:
    match verb:
        case "run":
            return _moves(work.run(), "is now") or "Nothing to archive."
        case "pause" | "resume":
            work.pause(verb == "pause")
            return "Paused." if verb == "pause" else "The curator runs automatically again."
        case _:
            return _status(work)


def _status(work: Curator) -> str:
    state = work.state()
    at = state.last_run_at
    ran = time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) if at else "never"
    lines = [f"{'paused' if state.paused else 'on'}; last run: {ran}"]
    lines += filter(None, [_moves(work.plan(), "would be")])
    return "\n".join((*lines, f"{len(work.list_archived())} in the archive"))


def _moves(moves: Sequence[Move], verb: str) -> str:
    return "\n".join(f"{m.name}: {verb} {m.to} ({m.idle_days} days without use)" for m in moves)


CURATOR_COMMANDS = (
    SlashCommand(
        "curator",
        "Manage unused skills.",
        curator,
        arguments="[status|run|pause|resume]",
        category="tools",
        complete=choices(*CURATOR_VERBS),
    ),
)
