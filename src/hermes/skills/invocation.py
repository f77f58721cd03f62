"""Renders skills for a session and stores bundles of skills."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, convert, encode
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import NotFound, UsageError
from hermes.skills.discovery import SkillEntry
from hermes.skills.files import resolve_inside
from hermes.skills.skill import (
    MAIN,
    READABLE,
    Skill,
    check_name,
    read_frontmatter,
    split_frontmatter,
)

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
    """Read a file of a skill. Raises UsageError for an invalid path, NotFound with the existing
    files."""
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
    """Return the support files by folder, without links."""
    folder = Path(entry.folder)
    files: dict[str, tuple[str, ...]] = {}
    for kind in READABLE:
        names = [
            path.relative_to(folder).as_posix()
            for path in sorted((folder / kind).rglob("*"))
            if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts
        ]
        if names:
            files[kind] = tuple(names[:MOST_LISTED])
    return files


async def render(
    text: str, entry: SkillEntry, loading: RenderContext, run_inline: RunInline | None = None
) -> str:
    """Replace `${HERMES_…}` and, where allowed, !`commands`."""
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
    """Render `/<name> instruction`: the typed text, then the skills."""
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
    """Split up to five leading skill commands from the rest of a line."""
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


class Bundle(Value):
    name: str
    description: str = ""
    skills: tuple[str, ...] = ()
    instruction: str = ""


class Bundles:
    """The user's skill bundles. `folder` is the home's `skill-bundles`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(path.stem for path in self._folder.glob("*.yaml")))

    def all(self) -> tuple[Bundle, ...]:
        """Return the readable bundles."""
        bundles: list[Bundle] = []
        for name in self.names():
            try:
                bundles.append(self.read(name))
            except UsageError:
                continue
        return tuple(bundles)

    def read(self, name: str) -> Bundle:
        try:
            text = (self._folder / f"{check_name(name)}.yaml").read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise NotFound(
                f"There is no bundle {name!r}; see `hermes bundles list`.", near=self.names()
            ) from error
        fields: JsonObject = read_frontmatter(text)
        try:
            return convert(Bundle, {**fields, "name": name})
        except DecodeError as error:
            raise UsageError(f"The bundle {name} is not valid: {error}.") from error

    def write(self, bundle: Bundle) -> Path:
        path = self._folder / f"{check_name(bundle.name)}.yaml"
        lines = [
            f"description: {_quote(bundle.description)}",
            "skills:",
            *(f"  - {check_name(name)}" for name in bundle.skills),
            f"instruction: {_quote(bundle.instruction)}",
        ]
        replace_file(path, ("\n".join(lines) + "\n").encode())
        return path

    def delete(self, name: str) -> None:
        try:
            (self._folder / f"{check_name(name)}.yaml").unlink()
        except FileNotFoundError as error:
            raise NotFound(
                f"There is no bundle {name!r}; see `hermes bundles list`.", near=self.names()
            ) from error


def _quote(text: str) -> str:
    """Quote a YAML string; YAML accepts JSON escapes in double quotes."""
    return encode(text).decode()
