"""Formats skills, versions and findings for every surface."""

from __future__ import annotations

import difflib
import time
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from hermes.commands.visible import one_line

if TYPE_CHECKING:
    from hermes.skills.history import Version
    from hermes.skills.hub.listing import SkillListing
    from hermes.skills.scan import SkillScan
    from hermes.skills.shelf import SkillStore

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


def difference(shelf: SkillStore, version: Version, other: Version | None = None) -> str:
    """The diff of a version against another, or against its parent."""
    before = other or next(
        (one for one in shelf.history(version.name) if one.hash and one.hash == version.base), None
    )
    old = shelf.tree(before) if before is not None else {}
    return tree_difference(old, shelf.tree(version))


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
