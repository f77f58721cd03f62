"""Renders the text of a skill for a session: variables, inline commands, files, settings."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from hermes.codec.values import Value
from hermes.core.errors import NotFound, UsageError
from hermes.skills.files import resolve_inside
from hermes.skills.frontmatter import split_frontmatter
from hermes.skills.scan import SkillEntry
from hermes.skills.skill import MAIN, READABLE, Skill

MOST_STACKED = 5
MOST_LISTED = 100
# Stored in journals: `commands` recognises invoked skills by this line.
CALLED = "[The person calls for the skills below. Follow them.]"
_INLINE = re.compile(r"!`([^`\n]+)`")

RunInline = Callable[[str], Awaitable[str]]
"""Runs an inline command; returns its truncated output and never raises."""


class RenderContext(Value):
    """Values for rendering. `settings` are those of `skills.config`."""

    session_id: str = ""
    template_vars: bool = True
    settings: dict[str, Any] = {}


def read_skill_file(entry: SkillEntry, path: str = MAIN) -> str:
    """Reads a file of a skill; UsageError for an invalid path, NotFound with the existing files."""
    folder = Path(entry.folder)
    if path != MAIN and path.split("/")[0] not in READABLE and "/" in path:
        raise UsageError(f"Files of a skill must be in {', '.join(READABLE)}, not {path!r}.")
    file = resolve_inside(folder, path)
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not text; use it by its path {file}.") from error
    except OSError as error:
        known = tuple(name for names in linked_files(entry).values() for name in names)
        raise NotFound(f"The skill {entry.name} has no file {path!r}.", near=known) from error


def linked_files(entry: SkillEntry) -> dict[str, tuple[str, ...]]:
    """Returns the support files by folder, without links."""
    folder = Path(entry.folder)
    found: dict[str, tuple[str, ...]] = {}
    for kind in READABLE:
        names = [
            path.relative_to(folder).as_posix()
            for path in sorted((folder / kind).rglob("*"))
            if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts
        ]
        if names:
            found[kind] = tuple(names[:MOST_LISTED])
    return found


async def render(
    text: str, entry: SkillEntry, loading: RenderContext, run_inline: RunInline | None = None
) -> str:
    """Replaces `${HERMES_…}` and, where allowed, !`commands`."""
    if loading.template_vars:
        text = text.replace("${HERMES_SKILL_DIR}", entry.folder)
        text = text.replace("${HERMES_SESSION_ID}", loading.session_id)
    if run_inline is None:
        return text
    pieces: list[str] = []
    end = 0
    for match in _INLINE.finditer(text):
        pieces += (text[end : match.start()], await run_inline(match[1]))
        end = match.end()
    return "".join((*pieces, text[end:]))


def settings_lines(skill: Skill, settings: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        f"{option.key} = {settings.get(option.key, option.default)}" for option in skill.options
    )


async def command_text(
    entries: tuple[SkillEntry, ...], instruction: str, loading: RenderContext
) -> str:
    """Renders `/<name> instruction`: the typed text, then the skills."""
    typed = " ".join((*(f"/{entry.name}" for entry in entries), instruction)).strip()
    parts = [typed, CALLED]
    for entry in entries:
        body = await render(split_frontmatter(read_skill_file(entry))[1].strip(), entry, loading)
        parts.append(f"# Skill {entry.name}\n\n{body}")
        parts.append(f"[Skill directory: {entry.folder}]")
        if lines := settings_lines(entry.skill, loading.settings):
            parts.append("[Skill settings: " + "; ".join(lines) + "]")
    return "\n\n".join(parts)


def leading_skills(line: str, is_skill: Callable[[str], bool]) -> tuple[tuple[str, ...], str]:
    """Splits up to five leading skill commands from the rest of a line."""
    names: list[str] = []
    rest = line.strip()
    while rest.startswith("/") and len(names) < MOST_STACKED:
        word, _, after = rest.partition(" ")
        name = word[1:].lower().replace("_", "-")
        if not is_skill(name):
            break
        names.append(name)
        rest = after.strip()
    return tuple(names), rest
