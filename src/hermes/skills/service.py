"""The skills of a home as one session sees and changes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

from hermes.codec.values import Value
from hermes.core.errors import NotFound, UsageError
from hermes.core.secrets import Captured, SecretRequest
from hermes.skills.catalogue import SkillEntry, SkillEnvironment, SkillScan, is_available
from hermes.skills.files import check_support, content_hash, read_tree, safe_member
from hermes.skills.history import Cause, Provenance, Version
from hermes.skills.invocation import RenderContext, read_skill_file
from hermes.skills.skill import MAIN, MOST_FILE_BYTES, Skill, SkillVariable
from hermes.skills.store import SkillChange, SkillStore
from hermes.skills.usage import SkillUsageStore

Status = Literal["available", "setup_needed", "unsupported"]


class Readiness(Value):
    """Missing requirements; `status` follows from them."""

    status: Status
    variables: tuple[SkillVariable, ...] = ()
    files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """Describes the missing requirements in one line."""
        if self.status == "unsupported":
            return "This skill does not support this system."
        missing = (
            *(f"the variable {each.name}{_for(each)}" for each in self.variables),
            *(f"the file {path}" for path in self.files),
            *(f"the program {name}" for name in self.commands),
        )
        return f"Missing: {', '.join(missing)}." if missing else ""


def _for(variable: SkillVariable) -> str:
    return f" (for {variable.required_for})" if variable.required_for else ""


def readiness(
    skill: Skill,
    *,
    system: str,
    variables: Mapping[str, str],
    home: Path,
    has_program: Callable[[str], bool],
) -> Readiness:
    """`variables` are those of the environment and `.env`."""
    if not skill.runs_on(system):
        return Readiness(status="unsupported")
    missing = tuple(
        each for each in skill.variables if not each.optional and not variables.get(each.name)
    )
    files = tuple(each.path for each in skill.credential_files if not _is_there(home, each.path))
    commands = tuple(name for name in skill.commands if not has_program(name))
    is_incomplete = missing or files or commands
    return Readiness(
        status="setup_needed" if is_incomplete else "available",
        variables=missing,
        files=files,
        commands=commands,
    )


def _is_there(home: Path, path: str) -> bool:
    """A path outside the home counts as missing."""
    try:
        real = (home / safe_member(path)).resolve()
    except UsageError:
        return False
    return real.is_relative_to(home.resolve()) and real.is_file()


VERSION_DIGITS = 12

Edit = Callable[[str, str, str, bool], str]
"""Replaces text like the patch tool: text, old, new, everywhere."""

AllowEnvironment = Callable[[Iterable[str]], tuple[str, ...]]
"""Exposes variables to the session's commands; returns those exposed."""


Capture = Callable[[SecretRequest], Awaitable[Captured]]
"""Asks a person for a secret and stores it."""


def allow_none(names: Iterable[str]) -> tuple[str, ...]:
    return ()


async def capture_none(need: SecretRequest) -> Captured:
    return "unavailable"


class SkillService:
    """`cause` maps a call id to the author of a change. With `staged`, changes wait for
    approval. `loaded` is called with name and version of each skill given to the model;
    `is_untrusted` returns whether an untrusted author wrote it. Inline commands run for at most
    `inline_seconds`; 0 disables them."""

    def __init__(
        self,
        store: SkillStore,
        usages: SkillUsageStore,
        *,
        here: SkillEnvironment,
        home: Path,
        cause: Callable[[str], Cause],
        edit: Edit,
        variables: Callable[[], Mapping[str, str]],
        has_program: Callable[[str], bool],
        loading: RenderContext | None = None,
        allow_environment: AllowEnvironment = allow_none,
        capture: Capture = capture_none,
        inline_seconds: float = 0,
        loaded: Callable[[str, str], None] = lambda name, version: None,
        is_untrusted: Callable[[str], bool] = lambda name: False,
        staged: bool = False,
    ) -> None:
        self.store = store
        self.usages = usages
        self.here = here
        self.loading = loading or RenderContext()
        self.allow_environment = allow_environment
        self.capture = capture
        self.inline_seconds = inline_seconds
        self.is_untrusted = is_untrusted
        self.staged = staged
        self._home = home
        self._cause = cause
        self._edit = edit
        self._variables = variables
        self._has_program = has_program
        self._loaded = loaded

    def scan(self) -> SkillScan:
        return self.store.scan()

    def available_skills(self) -> tuple[SkillEntry, ...]:
        return tuple(entry for entry in self.scan().entries if is_available(entry, self.here))

    def find(self, name: str) -> SkillEntry:
        """Raises NotFound, or UsageError for a disabled skill."""
        if name in self.here.disabled:
            raise UsageError(f"The skill {name} is disabled.")
        return self.store.find(name)

    def readiness(self, entry: SkillEntry) -> Readiness:
        return readiness(
            entry.skill,
            system=self.here.system,
            variables=self._variables(),
            home=self._home,
            has_program=self._has_program,
        )

    def provenance(self, entry: SkillEntry) -> Provenance:
        return self.store.provenance(entry)

    def note_view(self, entry: SkillEntry, *, used: bool = False) -> str:
        """Counts the view and returns the skill's version."""
        version = content_hash(read_tree(Path(entry.folder)))[:VERSION_DIGITS]
        count = self.usages.count_use if used else self.usages.count_view
        count(entry.name, version)
        self._loaded(entry.name, version)
        return version

    # Changes: each is validated and becomes one version.

    def create(self, call: str, name: str, content: str, category: str) -> Version:
        entry = self.scan().find(name)
        if entry is not None:
            raise UsageError(f"The skill {name} already exists ({entry.folder}); patch or edit it.")
        change = SkillChange(
            name=name,
            action="create",
            cause=self._cause(call),
            files={MAIN: content.encode()},
            category=category,
        )
        version = self._make(change)
        if not self.staged:
            self.usages.record_creation(name, "agent")
        return version

    def edit(self, call: str, name: str, content: str) -> Version:
        return self._change(call, name, "edit", {MAIN: content.encode()})

    def patch(
        self, call: str, name: str, path: str, old: str, new: str, everywhere: bool
    ) -> Version:
        text = read_skill_file(self.store.find(name), path)
        after = self._edit(text, old, new, everywhere)
        if after == text:
            raise UsageError("The patch changes nothing.")
        return self._change(call, name, "patch", {path: after.encode()})

    def write_file(self, call: str, name: str, path: str, content: str) -> Version:
        data = content.encode()
        if len(data) > MOST_FILE_BYTES:
            raise UsageError(f"A file of a skill may have at most {MOST_FILE_BYTES} bytes.")
        return self._change(call, name, "write_file", {check_support(path): data})

    def remove_file(self, call: str, name: str, path: str) -> Version:
        entry = self.store.find(name)
        if path not in read_tree(Path(entry.folder)):
            raise NotFound(f"The skill {name} has no file {path!r}.")
        return self._change(call, name, "remove_file", {check_support(path): None})

    def delete(self, call: str, name: str, absorbed_into: str | None) -> Version:
        if absorbed_into and absorbed_into != name:
            self.store.find(absorbed_into)
        elif absorbed_into == name:
            raise UsageError("A skill cannot be absorbed into itself.")
        words = "" if absorbed_into is None else f" (absorbed into {absorbed_into or 'nothing'})"
        return self._change(call, name, f"delete{words}", {})

    def _change(self, call: str, name: str, action: str, files: dict[str, bytes | None]) -> Version:
        self.store.find(name)
        change = SkillChange(name=name, action=action, cause=self._cause(call), files=files)
        version = self._make(change)
        if not self.staged:
            self.usages.record_patch(name)
        return version

    def _make(self, change: SkillChange) -> Version:
        return self.store.propose(change) if self.staged else self.store.apply(change)
