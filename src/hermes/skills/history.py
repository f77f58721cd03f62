"""Versions and provenance of skills."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeVar

from hermes.codec.atomic_files import append_line, replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value, replace
from hermes.core.errors import NotFound
from hermes.skills.files import Tree

T = TypeVar("T")
Who = Literal["agent", "review", "user", "curator", "bundled", "hub"]
Provenance = Literal["bundled", "hub", "agent", "user", "external", "project"]
VersionState = Literal["intended", "proposed", "active", "past", "refused", "abandoned"]
VersionOutcome = Literal["intended", "proposed", "active", "refused", "abandoned"]


class Cause(Value):
    """Why a skill was changed, and by whom."""

    # The author.
    who: Who
    session: str = ""
    call: str = ""
    model: str = ""
    # The reason.
    words: str = ""
    # The sources of text that was in view.
    origins: tuple[str, ...] = ()


class Version(Value, tag="version"):
    """A version of a skill: its files at one point in time."""

    id: str
    name: str
    # The skill's folder below the skills folder.
    place: str
    # Hashes by path; none for a removed skill.
    files: dict[str, str]
    hash: str
    # Hash of the version it was made from.
    base: str
    at: float
    action: str
    cause: Cause
    proposal: bool = False
    # Not stored: follows from later records.
    state: VersionState = "intended"
    reason: str = ""

    @property
    def removed(self) -> bool:
        return not self.files


class StateChange(Value, tag="settled"):
    """A new state of a version. "intended" marks a proposal that is being activated."""

    id: str
    state: VersionOutcome
    at: float
    reason: str = ""


Line = Version | StateChange


class SkillHistory:
    """An append-only history of all skills. Writers hold the lock of the skills folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._objects = folder / "objects"
        self._logs = folder / "logs"

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(path.stem for path in self._logs.glob("*.jsonl")))

    def read(self, name: str) -> tuple[Version, ...]:
        """Return all versions with their states, oldest first."""
        versions: dict[str, Version] = {}
        active = ""
        path = self._logs / f"{name}.jsonl"
        lines: Iterator[Line] = read_lines(Line, path)  # type: ignore[arg-type]
        for line in lines:
            match line:
                case Version(id=id, proposal=proposal):
                    versions[id] = replace(line, state="proposed" if proposal else "intended")
                case StateChange(id=id, state=state, reason=reason) if id in versions:
                    if state == "active" and active:
                        versions[active] = replace(versions[active], state="past")
                    active = id if state == "active" else active
                    versions[id] = replace(versions[id], state=state, reason=reason)
                case StateChange():
                    pass
        return tuple(versions.values())

    def version_in_use(self, name: str, digest: str) -> Version | None:
        """Return the version in use if it has this hash. A version whose activation was not
        recorded because of a crash counts as in use when its files are there."""
        for one in reversed(self.read(name)):
            if one.state in ("active", "intended") and one.hash == digest:
                return one
            if one.state == "active":
                return None
        return None

    def version(self, name: str, id: str) -> Version:
        """Find a version by id or id prefix. Raises NotFound."""
        versions = self.read(name)
        matches = [one for one in versions if id and one.id.startswith(id)]
        if len(matches) != 1:
            near = tuple(one.id for one in versions[-3:])
            raise NotFound(f"Skill {name} has no version {id!r}; see `skills history`.", near)
        return matches[0]

    def tree(self, version: Version) -> Tree:
        """Return the files of a version. Raises NotFound when stored content is damaged."""
        found: Tree = {}
        for name, digest in version.files.items():
            found[name] = (self._objects / digest[:2] / digest).read_bytes()
            if hashlib.sha256(found[name]).hexdigest() != digest:
                raise NotFound(
                    f"The stored content {digest[:12]} is damaged; choose another version."
                )
        return found

    def store_contents(self, tree: Mapping[str, bytes]) -> dict[str, str]:
        """Store contents durably; return their hashes by path."""
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in tree.items()}
        for name, digest in digests.items():
            path = self._objects / digest[:2] / digest
            if not path.exists():
                replace_file(path, tree[name])
        return digests

    def append(self, name: str, line: Line) -> None:
        append_line(self._logs / f"{name}.jsonl", encode(line))


def read_lines(kind: type[T], path: Path) -> Iterator[T]:
    """Yield the values of a JSONL file. Lines that a crash has truncated are skipped."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return
    for line in lines:
        with suppress(DecodeError):
            yield decode(kind, line)
