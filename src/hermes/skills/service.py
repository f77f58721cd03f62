"""The skills of a home as one session sees and changes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from hermes.codec.values import JsonObject, Value
from hermes.core.errors import NotFound, ToolError, UsageError
from hermes.skills.discovery import SkillEntry, SkillEnvironment, is_available
from hermes.skills.files import check_support, folder_hash, read_tree, resolve_inside
from hermes.skills.history import Cause, Version
from hermes.skills.invocation import RenderContext, read_skill_file
from hermes.skills.skill import MAIN, Skill, SkillVariable
from hermes.skills.store import SkillChange, SkillStore
from hermes.skills.usage import SkillUsageStore

VERSION_DIGITS = 12


class Readiness(Value):
    """Missing requirements; `status` follows from them."""

    status: Literal["available", "setup_needed", "unsupported"]
    variables: tuple[SkillVariable, ...] = ()
    files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """Describe the missing requirements in one line."""
        if self.status == "unsupported":
            return "This skill does not support this system."
        missing = (
            *(
                f"the variable {each.name}{each.required_for and f' (for {each.required_for})'}"
                for each in self.variables
            ),
            *(f"the file {path}" for path in self.files),
            *(f"the program {name}" for name in self.commands),
        )
        return f"Missing: {', '.join(missing)}." if missing else ""


def readiness(skill: Skill, system: str, variables: Mapping[str, str], home: Path) -> Readiness:
    """Return what a skill requires and this machine lacks. `variables` are those of the environment
    and `.env`."""
    # Slow to load, and only needed when a skill is loaded.
    import shutil

    if not skill.runs_on(system):
        return Readiness(status="unsupported")
    missing = tuple(
        each for each in skill.variables if not each.optional and not variables.get(each.name)
    )
    files = tuple(each.path for each in skill.credential_files if not _is_there(home, each.path))
    path = variables.get("PATH")
    commands = tuple(name for name in skill.commands if not shutil.which(name, path=path))
    return Readiness(
        status="setup_needed" if missing or files or commands else "available",
        variables=missing,
        files=files,
        commands=commands,
    )


def _is_there(home: Path, path: str) -> bool:
    """Return whether the file exists. A path outside the home counts as missing."""
    try:
        return resolve_inside(home, path).is_file()
    except UsageError:
        return False


class SkillService(Struct, kw_only=True):
    """The skill tools of one session."""

    store: SkillStore
    usages: SkillUsageStore
    here: SkillEnvironment
    home: Path
    # Returns the author of a change by call id.
    cause: Callable[[str], Cause]
    variables: Callable[[], Mapping[str, str]]
    loading: RenderContext = RenderContext()
    # Time limit of inline commands; 0 disables them.
    inline_seconds: float = 0
    # Returns whether an untrusted author wrote a skill.
    is_untrusted: Callable[[str], bool] = lambda name: False
    # Changes wait for approval.
    staged: bool = False

    def available_skills(self) -> tuple[SkillEntry, ...]:
        entries = self.store.scan().entries
        return tuple(entry for entry in entries if is_available(entry, self.here))

    def find(self, name: str) -> SkillEntry:
        """Return the skill of this name. Raises NotFound, or UsageError for a disabled skill."""
        if name in self.here.disabled:
            raise UsageError(f"The skill {name} is disabled; use another.")
        return self.store.find(name)

    def readiness(self, entry: SkillEntry) -> Readiness:
        return readiness(entry.skill, self.here.system, self.variables(), self.home)

    def count_view(self, entry: SkillEntry) -> str:
        """Count the view and return the skill's version."""
        version = folder_hash(entry.folder)[:VERSION_DIGITS]
        self.usages.count_view(entry.name, version)
        return version

    def change(self, call_id: str, arguments: JsonObject) -> Version:
        """Execute decoded arguments of `skill_manage`. The change is validated and becomes one
        version."""
        action, name = arguments["action"], arguments["name"]
        creates = action == "create"
        if creates and (entry := self.store.scan().find(name)) is not None:
            raise UsageError(f"The skill {name} already exists ({entry.folder}); patch or edit it.")
        into = arguments["absorbed_into"]
        if action == "delete" and into is not None:
            action = f"delete (absorbed into {into or 'nothing'})"
        change = SkillChange(
            name=name,
            action=action,
            cause=self.cause(call_id),
            files=self._changed_files(arguments),
            category=arguments["category"],
        )
        if self.staged:
            return self.store.propose(change)
        version = self.store.apply(change)
        if creates:
            self.usages.record_creation(name, "agent")
        else:
            self.usages.record_patch(name)
        return version

    def _changed_files(self, arguments: JsonObject) -> dict[str, bytes | None]:
        """Return new contents by path, None for a removed file; nothing removes the skill."""
        action, name, path = arguments["action"], arguments["name"], arguments["file_path"]
        if action == "create":
            return {MAIN: arguments["content"].encode()}
        entry = self.store.find(name)
        match action:
            case "edit":
                return {MAIN: arguments["content"].encode()}
            case "patch":
                text = read_skill_file(entry, path or MAIN)
                after = _patch(text, arguments)
                if after == text:
                    raise UsageError("The patch changes nothing.")
                return {path or MAIN: after.encode()}
            case "write_file":
                return {check_support(path): arguments["file_content"].encode()}
            case "remove_file":
                if path not in read_tree(Path(entry.folder)):
                    raise NotFound(f"The skill {name} has no file {path!r}.")
                return {check_support(path): None}
        if arguments["absorbed_into"] == name:
            raise UsageError("A skill cannot be absorbed into itself.")
        if arguments["absorbed_into"]:
            self.store.find(arguments["absorbed_into"])
        return {}


def _patch(text: str, arguments: JsonObject) -> str:
    """Replace text; find it with the matching rules of the patch tool."""
    from hermes.tools.edits.replace import find, replacements
    from hermes.tools.edits.text import apply_splices

    old, everywhere = arguments["old_string"], arguments["replace_all"]
    if not old:
        raise ToolError("old_string is empty; use edit to write the whole text.")
    found = find(text, old, replace_all=everywhere)
    if found is None:
        raise ToolError("old_string is not in the text; load the skill again and copy it.")
    if len(found.spans) > 1 and not everywhere:
        raise ToolError(f"old_string matches {len(found.spans)} places; add surrounding lines.")
    return apply_splices(text, replacements(text, old, arguments["new_string"], found))
