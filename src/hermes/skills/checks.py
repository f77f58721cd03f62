"""Validates the files of a skill before they are written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from hermes.core.errors import UsageError
from hermes.skills.files import safe_member
from hermes.skills.scan import SkillEntry
from hermes.skills.skill import MAIN, MOST_FILE_BYTES, SUPPORT, Skill

MOST_FILES = 200
MOST_BYTES = 20 * 1024 * 1024
ALIKE = 0.75
_COMMON = frozenset(
    "a an and are as at be by do for from how in into is it of on or that the this to use using "
    "when with you your".split()
)


def check_tree(before: Mapping[str, bytes], after: Mapping[str, bytes], *, strict: bool) -> None:
    """Raises UsageError for invalid files. With `strict`, new files must be in the support
    folders."""
    if MAIN not in after:
        raise UsageError(f"A skill needs a {MAIN}.")
    try:
        after[MAIN].decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{MAIN} is not UTF-8 text.") from error
    if len(after) > MOST_FILES or sum(map(len, after.values())) > MOST_BYTES:
        raise UsageError(f"A skill may have at most {MOST_FILES} files and {MOST_BYTES} bytes.")
    for name, data in after.items():
        safe_member(name)
        if name == MAIN or before.get(name) == data:
            continue
        if len(data) > MOST_FILE_BYTES and strict:
            raise UsageError(f"{name} is larger than {MOST_FILE_BYTES} bytes.")
        if strict:
            check_support(name)


def check_support(path: str) -> str:
    """Returns the path if a support file may be written there; UsageError."""
    folder, _, rest = safe_member(path).partition("/")
    if folder not in SUPPORT or not rest:
        raise UsageError(f"Files of a skill must be in {', '.join(SUPPORT)}, not {path!r}.")
    return path


def find_duplicate(skill: Skill, entries: Sequence[SkillEntry]) -> str:
    """Returns the name of a similar skill, or ""."""
    words = _words(skill)
    for entry in entries:
        others = _words(entry.skill)
        together = len(words | others)
        if together and len(words & others) / together >= ALIKE:
            return entry.name
    return ""


def _words(skill: Skill) -> frozenset[str]:
    text = f"{skill.name} {skill.description}".lower()
    return frozenset(re.findall(r"[^\W_]+", text)) - _COMMON
