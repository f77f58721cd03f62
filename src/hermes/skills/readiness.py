"""Checks whether the requirements of a skill are met."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from hermes.codec.values import Value
from hermes.core.errors import UsageError
from hermes.skills.files import safe_member
from hermes.skills.skill import Skill, SkillVariable

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
