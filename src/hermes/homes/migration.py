"""Imports the data of another agent into a home, or reports what it would import."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.config.document import read_document
from hermes.config.edit import set_from_text, write_settings
from hermes.config.environment import is_secret_name, mask
from hermes.config.home import replace_file
from hermes.config.schema import KeyPath as Key
from hermes.config.schema import (
    WrongType,
    find_setting,
    format_key,
    from_data,
    is_section,
    mapping_section,
)
from hermes.config.settings import Settings
from hermes.context.persona import has_persona
from hermes.homes.foreign_homes import ForeignHome
from hermes.memory.entries import ChangeSource, MemoryRefusal, Operation
from hermes.skills.files import read_tree, replace_folder
from hermes.skills.hub.lock import scan_files
from hermes.skills.session_index import skills_folder

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.journal.archive import SessionArchive
    from hermes.memory.service import MemoryService

Kind = Literal["setting", "secret", "soul", "memory", "skill", "sessions"]
State = Literal["taken", "would be taken", "there already", "left out"]
SkillConflict = Literal["skip", "overwrite", "rename"]
IMPORTS = "imported"
_NEEDS_FLAG = "import it with --secrets"


class MigrationItem(Value):
    """One item and its outcome; `note` gives the reason."""

    kind: Kind
    name: str
    state: State
    note: str = ""


class MigrationOptions(Value):
    """Options of a migration. Existing items are kept unless `overwrite` is set."""

    secrets: bool = False
    settings: bool = True
    overwrite: bool = False
    skill_conflict: SkillConflict = "skip"
    dry_run: bool = False


async def run_migration(
    run: RunContext,
    memory: MemoryService,
    archive: SessionArchive,
    foreign: ForeignHome,
    options: MigrationOptions,
) -> tuple[MigrationItem, ...]:
    """Migrate a home and return the outcome of every item in it."""
    migration = HomeMigration(run, memory, archive, foreign, options)
    return (
        *(migration.settings() if options.settings else ()),
        *migration.secrets(),
        *migration.soul(),
        *[item async for item in migration.memories()],
        *migration.skills(),
        *await migration.sessions(),
    )


class HomeMigration:
    def __init__(
        self,
        run: RunContext,
        memory: MemoryService,
        archive: SessionArchive,
        foreign: ForeignHome,
        options: MigrationOptions,
    ) -> None:
        self._run = run
        self._memory = memory
        self._archive = archive
        self._home = run.home
        self._foreign = foreign
        self._options = options
        self._done_state: State = "would be taken" if options.dry_run else "taken"

    def settings(self) -> Iterator[MigrationItem]:
        """Migrate the settings that Hermes has too; skip secrets."""
        existing = dict(_leaves(read_document(self._home).data))
        changes: dict[Key, JsonValue] = {}
        for path, value in _leaves(self._foreign.settings):
            key = format_key(path)
            setting = find_setting(Settings, path)
            if setting is None:
                yield self._item("setting", key, "left out", "the setting does not exist here")
            elif setting.secret or is_secret_name(path[-1]):
                yield self._item("setting", key, "left out", "secrets belong in .env")
            elif path in existing and not self._options.overwrite:
                yield self._item("setting", key, "there already")
            else:
                try:
                    from_data(setting.kind, value)
                except WrongType as error:
                    yield self._item("setting", key, "left out", f"it {error}")
                    continue
                changes[path] = value
                yield self._item("setting", key, self._done_state)
        if changes and not self._options.dry_run:
            write_settings(self._home, changes)

    def secrets(self) -> Iterator[MigrationItem]:
        for name, value in self._foreign.secrets.items():
            if self._run.config.secrets.get(name) and not self._options.overwrite:
                yield self._item("secret", name, "there already")
            elif not self._options.secrets:
                yield self._item("secret", name, "left out", _NEEDS_FLAG)
            else:
                if not self._options.dry_run:
                    set_from_text(self._home, name, value)
                yield self._item("secret", name, self._done_state, mask(value))

    def soul(self) -> Iterator[MigrationItem]:
        if not self._foreign.soul:
            return
        if has_persona(self._home) and not self._options.overwrite:
            yield self._item("soul", "SOUL.md", "there already")
            return
        if not self._options.dry_run:
            replace_file(self._home, self._home.soul, f"{self._foreign.soul}\n".encode())
        yield self._item("soul", "SOUL.md", self._done_state)

    async def memories(self) -> AsyncIterator[MigrationItem]:
        memories = self._memory.of()
        known = {entry.text for entry in await memories.entries()}
        source = ChangeSource(kind="person", surface="import")
        for target, texts in self._foreign.memories.items():
            for text in texts:
                if text in known:
                    yield self._item("memory", _short(text), "there already")
                    continue
                if not self._options.dry_run:
                    add = Operation(action="add", content=text)
                    outcome = await memories.change(target, [add], source=source)
                    if isinstance(outcome, MemoryRefusal):
                        yield self._item("memory", _short(text), "left out", outcome.error)
                        continue
                yield self._item("memory", _short(text), self._done_state)

    def skills(self) -> Iterator[MigrationItem]:
        root = skills_folder(self._home)
        for folder in self._foreign.skills:
            name = folder.name
            target = next((p.parent for p in root.rglob(f"{name}/SKILL.md")), None)
            if target is not None and self._options.skill_conflict == "skip":
                yield self._item("skill", name, "there already")
                continue
            if target is None or self._options.skill_conflict == "rename":
                target = _unused_path(root / IMPORTS / name)
            yield self._skill(folder, target)

    def _skill(self, folder: Path, target: Path) -> MigrationItem:
        tree = read_tree(folder)
        found = scan_files(tree)
        if found.verdict == "dangerous":
            why = f"the scan found it dangerous ({found.findings[0].id})"
            return self._item("skill", folder.name, "left out", why)
        if not self._options.dry_run:
            replace_folder(target, tree, skills_folder(self._home) / ".staging")
        note = "" if target.name == folder.name else f"as {target.name}"
        return self._item("skill", folder.name, self._done_state, note)

    async def sessions(self) -> tuple[MigrationItem, ...]:
        if self._foreign.sessions is None:
            return ()
        if self._options.dry_run:
            count = sum(1 for _ in self._foreign.sessions())
            return (self._item("sessions", f"{count} sessions", self._done_state),)
        done = await self._archive.import_lines(self._foreign.sessions())
        name = f"{done.sessions} sessions, {done.messages} messages"
        note = f"{done.skipped} already existed" if done.skipped else ""
        return (self._item("sessions", name, "taken", note),)

    def _item(self, kind: Kind, name: str, state: State, note: str = "") -> MigrationItem:
        return MigrationItem(kind=kind, name=name, state=state, note=note)


def _leaves(data: JsonObject, before: Key = ()) -> Iterator[tuple[Key, JsonValue]]:
    """Yield settings with their full path. A mapping that is one setting is not split."""
    for name, value in data.items():
        path = (*before, name)
        setting = find_setting(Settings, path)
        is_group = setting is None or is_section(setting.kind) or mapping_section(setting.kind)
        if isinstance(value, dict) and value and is_group:
            yield from _leaves(value, path)
        else:
            yield path, value


def _short(text: str) -> str:
    first = " ".join(text.split())
    return first if len(first) <= 60 else f"{first[:59]}…"


def _unused_path(path: Path) -> Path:
    number, found = 2, path
    while found.exists():
        found = path.with_name(f"{path.name}-{number}")
        number += 1
    return found
