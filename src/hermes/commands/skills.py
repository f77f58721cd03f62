"""Skill commands (/skills, /bundles, /learn, /curator), one command per skill, and texts about
skills for every surface."""

from __future__ import annotations

import asyncio
import difflib
import shlex
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from hermes.commands.formatting import format_time, one_line, sanitize
from hermes.commands.registry import CommandContext, Outcome, SendMessage, SlashCommand, Suggestion

if TYPE_CHECKING:
    from hermes.skills.curator import Curator, Move
    from hermes.skills.discovery import SkillScan
    from hermes.skills.history import Version
    from hermes.skills.hub.source import SkillListing
    from hermes.skills.invocation import Bundle
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
    lines = []
    for each in reversed(tuple(versions)):
        by = " ".join(filter(None, (each.cause.who, each.cause.model, each.cause.session)))
        reason = f" ({each.reason})" if each.reason else ""
        day = format_time(each.at)[:-3]
        lines.append(f"{each.id}  {day}  {each.state:<9} {each.action}, by {by}{reason}")
    return lines


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
            lines.append(f"{name}: binary files differ")
            continue
        lines += difflib.unified_diff(first, second, f"a/{name}", f"b/{name}", lineterm="")
    return "\n".join(lines) or "No difference."


def _rows(data: bytes | None) -> list[str] | None:
    """None for binary data."""
    try:
        return (data or b"").decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return None


MAX_FOUND = 10
LEARN = (
    "Learn from {source}: read it, find the procedure that is worth keeping, and save it as a "
    "skill with skill_manage (steps, pitfalls, verification). If a skill for that kind of task "
    "exists, patch it instead."
)


def _library(here: CommandContext) -> SkillLibrary:
    opened = here.session.transcript.opened
    return here.app.skills(opened.cwd if opened else "")


def _platform(here: CommandContext) -> str:
    opened = here.session.transcript.opened
    return opened.source if opened else "cli"


class SkillCommands:
    """One command per skill: `/<name> instruction` sends the skill and the instruction."""

    async def run(self, here: CommandContext, line: str) -> Outcome | None:
        called = await _library(here).expand_call(line, _platform(here), here.session.id)
        return SendMessage(text=called.text, origin=called.origin) if called else None

    async def names(self, here: CommandContext) -> Sequence[Suggestion]:
        library, platform = _library(here), _platform(here)
        off = library.here(platform).disabled
        scanned = await asyncio.to_thread(library.scan.scan)
        skills = [
            Suggestion(text=entry.name, description=one_line(entry.skill.description, 60))
            for entry in scanned.entries
            if entry.name not in off
        ]
        bundles = [
            Suggestion(text=each.name, description=one_line(each.description, 60))
            for each in library.bundles.all()
        ]
        return (*skills, *bundles)


async def skills(here: CommandContext, argument: str) -> str | None:
    try:
        arguments = shlex.split(argument)
    except ValueError:
        return None
    text = await _run_verb(_library(here), _platform(here), arguments or ["list"])
    return text and sanitize(text)


async def _run_verb(library: SkillLibrary, platform: str, arguments: list[str]) -> str | None:
    store = library.store
    match arguments:
        case ["list", *_]:
            scanned = await asyncio.to_thread(library.scan.scan)
            lines = skill_list_lines(scanned, library.here(platform).disabled)
            return "\n".join(lines) or "There are no skills yet."
        case ["view", name]:
            from hermes.skills.invocation import read_skill_file

            return await asyncio.to_thread(read_skill_file, store.find(name))
        case ["search", *query]:
            skills, problems = await library.hub.search(" ".join(query), limit=MAX_FOUND)
            lines = [*listing_lines(skills), *(f"({each})" for each in problems)]
            hint = "`hermes skills install ID` installs one."
            return "\n".join((*lines, hint)) if lines else "Nothing found."
        case ["history", name]:
            versions = await asyncio.to_thread(store.history, name)
            return "\n".join(version_lines(versions)) or "This skill was never changed."
        case ["pending", *_]:
            waiting = await asyncio.to_thread(store.proposals)
            return "\n".join(map(proposal_line, waiting)) or "No changes are pending."
        case ["diff", version]:
            return await asyncio.to_thread(difference, store, store.proposal(version))
        case ["approve", version]:
            done = await asyncio.to_thread(library.approve, store.proposal(version))
            return f"{done.name} is now at {done.id}."
        case ["reject", version, *reason]:
            proposal, why = store.proposal(version), " ".join(reason) or "rejected by the person"
            await asyncio.to_thread(store.refuse, proposal, why)
            return f"{proposal.id} is rejected."
        case ["revert", name, version]:
            done = await asyncio.to_thread(library.revert, name, version)
            return f"{done.name} is reverted; this is version {done.id}."
    return None


def bundle_lines(found: Iterable[Bundle]) -> list[str]:
    return [
        f"/{each.name}  {one_line(each.description)} ({', '.join(each.skills)})" for each in found
    ]


async def bundles(here: CommandContext, argument: str) -> str:
    found = await asyncio.to_thread(_library(here).bundles.all)
    return "\n".join(bundle_lines(found)) or "There is no bundle; `hermes bundles create` adds one."


async def reload_skills(here: CommandContext, argument: str) -> str:
    scanned = await asyncio.to_thread(_library(here).scan.scan)
    lines = [f"Found {len(scanned.entries)} skills; new sessions see the new ones."]
    lines += [f"⚠ {each.folder}: {each.problem}" for each in scanned.broken]
    return sanitize("\n".join(lines))


async def learn(here: CommandContext, argument: str) -> Outcome | None:
    return SendMessage(text=LEARN.format(source=argument)) if argument else None


async def curator(here: CommandContext, argument: str) -> str | None:
    curator = here.app.skills().curator()
    match argument:
        case "" | "status":
            return "\n".join(await asyncio.to_thread(curator_lines, curator))
        case "run":
            moves = await asyncio.to_thread(curator.run)
            return "\n".join(move_lines(moves, "is")) or "There is nothing to archive."
        case "pause" | "resume":
            await asyncio.to_thread(curator.pause, argument == "pause")
            return f"Automatic runs are {'off' if argument == 'pause' else 'on'}."
    return None


def curator_lines(curator: Curator) -> list[str]:
    """The last run, and what a run would do now."""
    state = curator.state()
    last = format_time(state.last_run_at) if state.last_run_at else "never"
    return [
        f"{'paused' if state.paused else 'on'}; last run: {last}",
        *move_lines(curator.plan(), "would be"),
        f"{len(curator.list_archived())} in the archive",
    ]


def move_lines(moves: Iterable[Move], verb: str) -> list[str]:
    return [f"{m.name:<28} {verb} {m.to} ({m.idle_days} days without use)" for m in moves]


SKILL_COMMANDS = (
    SlashCommand(
        "skills [list|view NAME|search TEXT|history NAME|diff ID|revert NAME ID|pending|approve ID|"
        "reject ID]",
        "List, search, approve and revert skills; /NAME uses a skill.",
        skills,
    ),
    SlashCommand("bundles", "List skill bundles.", bundles),
    SlashCommand("reload-skills", "Read the skill files again.", reload_skills),
    SlashCommand("learn SOURCE", "Create a skill from a file, a folder or a URL.", learn),
    SlashCommand(
        "curator [status|run|pause|resume]", "Archive skills that are no longer used.", curator
    ),
)
