"""The skills of a home and their versions: find, change, propose, promote, revert."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import encode
from hermes.codec.values import Value, replace
from hermes.core.errors import NotFound, UsageError
from hermes.core.world import World
from hermes.skills.discovery import SkillEntry, SkillScan, SkillScanner
from hermes.skills.files import (
    Tree,
    check_tree,
    content_hash,
    find_duplicate,
    folder_hash,
    lock_skills,
    read_tree,
    remove_folder,
    replace_folder,
    safe_member,
)
from hermes.skills.history import (
    Cause,
    Provenance,
    SkillHistory,
    StateChange,
    Version,
    VersionOutcome,
    Who,
)
from hermes.skills.skill import MAIN, check_name, skill_path, validate_skill

NEAR = 5
_AUTONOMOUS = ("review", "curator")

Guard = Callable[[str, Tree], None]
"""Raises UsageError when these files must not become this skill."""


class SkillChange(Value):
    """A requested change of a skill."""

    name: str
    action: str
    cause: Cause
    # New contents by path, None to delete a file. Without files the skill is removed.
    files: dict[str, bytes | None] = {}
    # The files are the complete skill.
    whole: bool = False
    category: str = ""


class SkillStore:
    """The skills of a home, with their history. `folder` is the home's `skills` folder; `bundled`
    and `installed` return content hashes by skill name. Methods block; call them in a thread."""

    def __init__(
        self,
        folder: Path,
        scan: SkillScanner,
        world: World,
        *,
        bundled: Callable[[], Mapping[str, str]],
        installed: Callable[[], Mapping[str, str]],
        guard: Guard | None = None,
    ) -> None:
        self.folder = folder
        self._scan = scan
        self._world = world
        self._history = SkillHistory(folder / ".history")
        self._staging = folder / ".staging"
        self._bundled = bundled
        self._installed = installed
        self._guard = guard

    # Queries

    def scan(self) -> SkillScan:
        return self._scan.scan()

    def find(self, name: str) -> SkillEntry:
        """Find a skill by name, category and name, or folder. Raises NotFound."""
        scanned = self.scan()
        if (entry := scanned.find(name)) is not None:
            twins = [
                each
                for each in scanned.shadowed
                if (each.name, each.kind) == (entry.name, entry.kind)
            ]
            if twins:
                places = ", ".join(each.folder for each in (entry, *twins))
                raise UsageError(
                    f"Several skills have the name {name}; choose one by folder: {places}"
                )
            return entry
        for entry in (*scanned.entries, *scanned.shadowed):
            if name in (f"{entry.category}/{entry.name}", entry.folder):
                return entry
        for broken in scanned.broken:
            if Path(broken.folder).name == name:
                raise UsageError(f"The skill {name} is not valid: {broken.problem}")
        # Slow to load and only needed for an error.
        import difflib

        known = [entry.name for entry in scanned.entries]
        near = difflib.get_close_matches(name, known, n=NEAR, cutoff=0.4)
        raise NotFound(f"There is no skill {name!r}.", near=tuple(near))

    def provenance(self, entry: SkillEntry) -> Provenance:
        """Return where a skill comes from. A skill edited by a person counts as the user's own."""
        if entry.kind != "home":
            return entry.kind
        present = folder_hash(entry.folder)
        if self._installed().get(entry.name) == present:
            return "hub"
        if self._bundled().get(entry.name) == present:
            return "bundled"
        if self._history.version_in_use(entry.name, present) is None:
            return "user"
        versions = self._history.read(entry.name)
        settled = [one for one in versions if one.state in ("active", "past", "intended")]
        ours = all(one.cause.who in ("agent", *_AUTONOMOUS) for one in settled)
        return "agent" if ours else "user"

    def origins(self, entry: SkillEntry) -> tuple[str, ...]:
        """Return the sources that were in view when the agent wrote the skill; () for skills of
        others and if a person edited it since."""
        if entry.kind != "home":
            return ()
        if self._history.version_in_use(entry.name, folder_hash(entry.folder)) is None:
            return ()
        versions = self._history.read(entry.name)
        settled = (one for one in versions if one.state in ("active", "past", "intended"))
        return tuple(sorted({origin for one in settled for origin in one.cause.origins}))

    def active(self, name: str) -> Version | None:
        """Return the version in use; None when the skill was never changed here or was edited
        since."""
        entry = self.scan().find(name)
        if entry is None or entry.kind != "home":
            return None
        return self._history.version_in_use(name, folder_hash(entry.folder))

    def history(self, name: str) -> tuple[Version, ...]:
        return self._history.read(name)

    def names_with_history(self) -> tuple[str, ...]:
        """Return the names of all skills with a history, including removed ones."""
        return self._history.names()

    def proposals(self) -> tuple[Version, ...]:
        """Return open proposals, oldest first."""
        waiting = [
            one
            for name in self._history.names()
            for one in self.history(name)
            if self._is_open(one)
        ]
        return tuple(sorted(waiting, key=lambda one: one.at))

    def _is_open(self, one: Version) -> bool:
        """Return whether a proposal is undecided, or a crash interrupted its activation."""
        if one.state == "proposed":
            return True
        return one.proposal and one.state == "intended" and self._present(one.place)[1] != one.hash

    def version(self, name: str, id: str) -> Version:
        return self._history.version(name, id)

    def proposal(self, id: str) -> Version:
        found = [one for one in self.proposals() if one.id.startswith(id)]
        if len(found) != 1:
            near = tuple(one.id for one in self.proposals()[:NEAR])
            raise NotFound(f"There is no open proposal {id!r}.", near=near)
        return found[0]

    def tree(self, version: Version) -> Tree:
        return self._history.tree(version)

    # Changes

    def propose(self, change: SkillChange) -> Version:
        """Store and validate a change without activating it."""
        with lock_skills(self.folder):
            return self._record_intent(change, proposal=True)

    def apply(self, change: SkillChange) -> Version:
        """Apply a change. A manual edit made before is kept in the history."""
        with lock_skills(self.folder):
            return self._activate(self._record_intent(change, proposal=False))

    def promote(self, version: Version, reason: str = "") -> Version:
        """Activate a proposal. Raises UsageError when the skill changed since."""
        with lock_skills(self.folder):
            present = self._open_proposal(version)
            if self._present(present.place)[1] != present.base:
                raise UsageError(
                    f"The skill {version.name} changed since {version.id} was proposed; "
                    "reject it and propose again."
                )
            self._settle(present, "intended")
            return self._activate(present, reason)

    def refuse(self, version: Version, reason: str) -> Version:
        with lock_skills(self.folder):
            self._settle(self._open_proposal(version), "refused", reason)
            return self._history.version(version.name, version.id)

    def revert(self, name: str, id: str, cause: Cause) -> Version:
        """Restore an older version as a new one."""
        old = self._history.version(name, id)
        if old.removed:
            raise UsageError(f"Version {old.id} removed the skill; choose another.")
        return self.apply(
            SkillChange(
                name=name,
                action=f"revert to {old.id}",
                cause=cause,
                files=dict(self._history.tree(old)),
                whole=True,
                category=old.place.rpartition("/")[0],
            )
        )

    def adopt(self, name: str, cause: Cause) -> Version | None:
        """Record the current files as a version, if they are not one."""
        with lock_skills(self.folder):
            entry = self._own(name)
            return self._record_present(entry, cause.who, cause) if entry else None

    def _open_proposal(self, version: Version) -> Version:
        present = self._history.version(version.name, version.id)
        if not self._is_open(present):
            raise UsageError(
                f"Version {version.id} is not an open proposal; its state is {present.state}."
            )
        return present

    def _record_intent(self, change: SkillChange, *, proposal: bool) -> Version:
        check_name(change.name)
        entry = self._own(change.name)
        if entry is None and not change.files:
            raise NotFound(f"There is no skill {change.name!r}.")
        if entry is not None:
            relative_path = self._relative(entry)
        else:
            relative_path = skill_path(change.name, change.category)
        before, base = self._present(relative_path)
        if entry is not None:
            autonomous = change.cause.who in _AUTONOMOUS
            if autonomous and (origin := self.provenance(entry)) != "agent":
                raise UsageError(
                    f"The skill {entry.name} is not the agent's own ({origin}) and stays unchanged."
                )
            self._record_present(entry, None, change.cause)
        after = _apply_to_tree(before, change)
        if after:
            self._check(change, before, after, fresh=entry is None)
        version = self._append_version(
            change.name,
            relative_path,
            after,
            change.action,
            change.cause,
            base=base,
            proposal=proposal,
        )
        self._world.kill_point("skill.intended")
        return version

    def _append_version(
        self,
        name: str,
        relative_path: str,
        tree: Tree,
        action: str,
        cause: Cause,
        *,
        base: str = "",
        proposal: bool = False,
    ) -> Version:
        """Store the files and append a version; its id is a hash of its fields."""
        files = self._history.store_contents(tree)
        self._world.kill_point("skill.kept")
        blank = Version(
            id="",
            name=name,
            place=relative_path,
            files=files,
            hash=content_hash(tree) if tree else "",
            base=base,
            at=self._world.clock.now(),
            action=action,
            cause=cause,
            proposal=proposal,
        )
        version = replace(blank, id="v" + hashlib.sha256(encode(blank)).hexdigest()[:12])
        self._history.append(name, version)
        return version

    def _activate(self, version: Version, reason: str = "") -> Version:
        folder = self.folder / version.place
        if version.removed:
            remove_folder(folder, self._staging)
        else:
            self._write(folder, self._history.tree(version))
        self._world.kill_point("skill.written")
        self._settle(version, "active", reason)
        return self._history.version(version.name, version.id)

    def _write(self, folder: Path, tree: Tree) -> None:
        before = read_tree(folder) if folder.is_dir() else None
        if before is not None:
            changed = [name for name in tree if before.get(name) != tree[name]]
            if len(changed) <= 1 and set(before) <= set(tree):
                # A single file is replaced atomically, so programs that run in the folder keep
                # working.
                for name in changed:
                    replace_file(folder / safe_member(name), tree[name])
                return
        replace_folder(folder, tree, self._staging, kill_point=self._world.kill_point)

    def _settle(self, version: Version, state: VersionOutcome, reason: str = "") -> None:
        at = self._world.clock.now()
        self._history.append(
            version.name, StateChange(id=version.id, state=state, at=at, reason=reason)
        )
        self._world.kill_point("skill.settled")

    def _record_present(self, entry: SkillEntry, who: Who | None, cause: Cause) -> Version | None:
        """Record files left by a person, an installation or an interrupted run."""
        tree = read_tree(Path(entry.folder))
        digest = content_hash(tree)
        for one in reversed(self._history.read(entry.name)):
            if one.state == "active" and one.hash == digest:
                return None
            if one.state == "intended" and one.hash == digest:
                self._settle(one, "active")
                return None
            if one.state == "intended":
                self._settle(one, "proposed" if one.proposal else "abandoned")
        if who is None:
            origin = self.provenance(entry)
            author: Who = "hub" if origin == "hub" else "bundled" if origin == "bundled" else "user"
            cause = Cause(who=author, words="found in the folder")
        version = self._append_version(entry.name, self._relative(entry), tree, "found", cause)
        self._settle(version, "active")
        return version

    def _check(self, change: SkillChange, before: Tree, after: Tree, *, fresh: bool) -> None:
        by_agent = change.cause.who in ("agent", *_AUTONOMOUS)
        check_tree(before, after, strict=by_agent)
        skill = validate_skill(after[MAIN].decode("utf-8"), change.name)
        if fresh and by_agent and change.action == "create":
            twin = find_duplicate(skill, self.scan().entries)
            if twin:
                raise UsageError(f"The skill {twin} covers the same task; patch it instead.")
        if self._guard is not None and by_agent:
            self._guard(change.name, after)

    def _own(self, name: str) -> SkillEntry | None:
        """Return the skill of this name in the writable root. UsageError if it is elsewhere."""
        entry = self.scan().find(name)
        if entry is not None and entry.kind != "home":
            raise UsageError(
                f"The skill {name} is in {entry.folder}, which is read-only for Hermes."
            )
        return entry

    def _relative(self, entry: SkillEntry) -> str:
        return Path(entry.folder).resolve().relative_to(self.folder.resolve()).as_posix()

    def _present(self, relative_path: str) -> tuple[Tree, str]:
        folder = self.folder / relative_path
        if not folder.is_dir():
            return {}, ""
        tree = read_tree(folder)
        return tree, content_hash(tree)


def _apply_to_tree(before: Tree, change: SkillChange) -> Tree:
    if not change.files:
        return {}
    after: Tree = {} if change.whole else dict(before)
    for name, data in change.files.items():
        safe_member(name)
        if data is None:
            after.pop(name, None)
        else:
            after[name] = data
    return after
