"""Searches, installs, updates and removes skills from external sources."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hermes.codec.values import Value, replace
from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.skills.files import (
    Tree,
    check_tree,
    content_hash,
    folder_hash,
    lock_skills,
    read_tree,
    replace_folder,
    safe_member,
)
from hermes.skills.history import Cause
from hermes.skills.hub.lock import (
    SCANNER,
    HubLedger,
    InstalledSkill,
    Ruling,
    decide_ruling,
    scan_files,
)
from hermes.skills.hub.source import SkillListing, SkillPackage, SkillSource, after_prefix
from hermes.skills.skill import MAIN, Skill, check_name, parse_skill, skill_path, validate_skill
from hermes.skills.store import SkillChange, SkillStore

if TYPE_CHECKING:
    from hermes.policy.scan.scanner import ScanResult

_HIDDEN = re.compile(r"(?:^|/)\.[^./]")

Condition = Literal["current", "changed", "edited", "missing", "unreachable"]


class PreparedInstall(Value):
    """A fetched and scanned skill in quarantine, not in use."""

    name: str
    package: SkillPackage
    scan: ScanResult
    ruling: Ruling
    digest: str
    # Path below the skills folder.
    install_path: str
    quarantine: str
    # The files it would replace.
    before: dict[str, bytes] = {}


class UpdateCheck(Value):
    name: str
    condition: Condition
    words: str = ""


class AuditResult(Value):
    name: str
    source: str
    scan: ScanResult
    edited: bool = False


Confirm = Callable[[PreparedInstall], bool]


class Hub:
    """Installs and updates skills from sources. The scan gives an advisory verdict; the trust table
    turns it into a ruling. Downloaded files are never executed."""

    def __init__(
        self, store: SkillStore, ledger: HubLedger, sources: Sequence[SkillSource]
    ) -> None:
        self.ledger = ledger
        self._store = store
        self._sources = sources

    # Search

    async def search(
        self, query: str, *, source: str = "", limit: int = 20
    ) -> tuple[tuple[SkillListing, ...], tuple[str, ...]]:
        """Return listings, best sources first, and errors of sources that failed."""
        chosen = [each for each in self._sources if source in ("", "all", each.id)]
        if not chosen:
            known = ", ".join(each.id for each in self._sources)
            raise UsageError(f"There is no source {source!r}; known sources: {known}.")
        asked = [each.search(query, limit) for each in chosen]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        listings: list[SkillListing] = []
        problems: list[str] = []
        for each, answer in zip(chosen, answers, strict=True):
            if isinstance(answer, HermesError):
                problems.append(f"{each.id}: {answer}")
            elif isinstance(answer, BaseException):
                raise answer
            else:
                listings += answer
        unique = {one.identifier: one for one in reversed(listings)}
        return tuple(reversed(unique.values()))[:limit], tuple(problems)

    async def fetch(self, identifier: str) -> SkillPackage:
        for source in self._sources:
            if rest := after_prefix(identifier, source.id):
                return await source.package(rest)
        for source in self._sources:
            if source.claims(identifier):
                return await source.package(identifier)
        return await self._by_name(identifier)

    async def _by_name(self, name: str) -> SkillPackage:
        """Resolve a bare name to an official skill or to the only match in the taps."""
        matches, _ = await self.search(name, limit=50)
        exact = [each for each in matches if each.name == name]
        ours = [each for each in exact if each.trust == "builtin"]
        chosen = ours or exact
        if len(chosen) != 1:
            near = tuple(each.identifier for each in (exact or matches)[:5])
            which = "Several skills are" if exact else "No skill is"
            raise NotFound(f"{which} called {name!r}; install one by its identifier.", near=near)
        return await self.fetch(chosen[0].identifier)

    # Installation

    async def prepare(
        self, identifier: str, *, force: bool = False, category: str = "", name: str = ""
    ) -> PreparedInstall:
        """Fetch into quarantine and scan. The caller commits or drops it."""
        package = await self.fetch(identifier)
        return await asyncio.to_thread(self._prepare, package, force, category, name)

    def _prepare(
        self, package: SkillPackage, force: bool, category: str, name: str
    ) -> PreparedInstall:
        files, skill = _validated_files(package, name)
        validate_skill(files[MAIN].decode("utf-8"), skill.name)
        wanted = skill.name
        old = self.ledger.list_installed().get(wanted)
        install_path, before = self._install_path(wanted, category or skill.category, old)
        quarantine = self.ledger.folder / "quarantine" / f"{wanted}.{os.urandom(4).hex()}"
        replace_folder(quarantine, files, self.ledger.folder / "quarantine", durable=False)
        held = read_tree(quarantine)
        scan = scan_files(held)
        return PreparedInstall(
            name=wanted,
            package=package,
            scan=scan,
            ruling=decide_ruling(
                package.listing.trust,
                scan.verdict,
                force=force,
                only_resembles=scan.only_resembles,
            ),
            digest=content_hash(held),
            install_path=install_path,
            quarantine=str(quarantine),
            before=before,
        )

    def drop(self, prepared: PreparedInstall) -> None:
        shutil.rmtree(prepared.quarantine, ignore_errors=True)

    def commit(self, prepared: PreparedInstall) -> InstalledSkill:
        """Install exactly what was scanned. Raises UsageError when the ruling forbids it."""
        listing, verdict = prepared.package.listing, prepared.scan.verdict
        if not prepared.ruling.allowed:
            self._audit("BLOCK", prepared)
            self.drop(prepared)
            raise UsageError(f"{prepared.name} was not installed. {prepared.ruling.reason}")
        files = read_tree(Path(prepared.quarantine))
        if content_hash(files) != prepared.digest:
            self.drop(prepared)
            raise UsageError(
                f"The downloaded files of {prepared.name} changed after the scan, so it was not "
                "installed; install it again."
            )
        known = self.ledger.list_installed().get(prepared.name)
        now = self.ledger.timestamp()
        entry = InstalledSkill(
            source=listing.source,
            identifier=listing.identifier,
            trust_level=listing.trust,
            scan_verdict=verdict,
            scanner=SCANNER,
            content_hash=f"sha256:{prepared.digest}",
            install_path=prepared.install_path,
            files=tuple(sorted(files)),
            installed_at=known.installed_at if known else now,
            updated_at=now,
        )
        # Recorded first: an unrecorded skill would count as the user's own.
        self.ledger.write(prepared.name, entry)
        with lock_skills(self._store.folder):
            replace_folder(
                self._store.folder / prepared.install_path, files, self._store.folder / ".staging"
            )
        self._store.adopt(prepared.name, Cause(who="hub", words=listing.identifier))
        self._audit("UPDATE" if known else "INSTALL", prepared)
        self.drop(prepared)
        return entry

    async def install(
        self,
        identifier: str,
        confirm: Confirm,
        *,
        force: bool = False,
        category: str = "",
        name: str = "",
    ) -> InstalledSkill | None:
        """Prepare and commit a skill, and return it; None when the person declined."""
        prepared = await self.prepare(identifier, force=force, category=category, name=name)
        if prepared.ruling.allowed and not confirm(prepared):
            self.drop(prepared)
            return None
        return await asyncio.to_thread(self.commit, prepared)

    def uninstall(self, name: str, *, force: bool = False) -> None:
        """Remove the skill; its files stay in the history. An edited skill needs `force`."""
        entry = self._entry(name)
        folder = self.ledger.folder_of(name, entry)
        if folder.is_dir():
            if folder_hash(folder) != entry.digest and not force:
                raise UsageError(f"You have edited {name}; use --force to remove it.")
            cause = Cause(who="user", words="uninstalled")
            self._store.apply(SkillChange(name=name, action="delete", cause=cause))
        self.ledger.write(name, None)
        self.ledger.append_audit(
            "UNINSTALL", name, entry.source, entry.trust_level, "-", entry.content_hash
        )

    # Updates

    async def check(self, names: Sequence[str] = ()) -> tuple[UpdateCheck, ...]:
        known = self.ledger.list_installed()
        chosen = names or tuple(known)
        return tuple([await self._check_installed(name, self._entry(name)) for name in chosen])

    async def _check_installed(self, name: str, entry: InstalledSkill) -> UpdateCheck:
        folder = self.ledger.folder_of(name, entry)
        if not folder.is_dir():
            return UpdateCheck(
                name=name, condition="missing", words="install it again or uninstall it"
            )
        if folder_hash(folder) != entry.digest:
            return UpdateCheck(name=name, condition="edited", words="you have changed it")
        try:
            package = await self.fetch(entry.identifier)
            files, _ = _validated_files(package, name)
        except HermesError as error:
            return UpdateCheck(name=name, condition="unreachable", words=str(error))
        condition: Condition = "current" if content_hash(files) == entry.digest else "changed"
        return UpdateCheck(name=name, condition=condition)

    async def update(
        self, name: str, confirm: Confirm, *, force: bool = False
    ) -> Literal["updated", "current", "refused"]:
        entry = self._entry(name)
        now = await self._check_installed(name, entry)
        if now.condition == "current":
            return "current"
        if now.condition == "unreachable":
            raise HermesError(now.words)
        if now.condition == "edited" and not force:
            raise UsageError(
                f"You have edited {name}; use --force to replace it. `hermes skills revert {name}` "
                "brings your version back."
            )
        category = entry.install_path.rpartition("/")[0]
        done = await self.install(
            entry.identifier, confirm, force=force, category=category, name=name
        )
        return "updated" if done is not None else "refused"

    def audit(self, *, deep: bool = False) -> tuple[AuditResult, ...]:
        """Rescan installed skills; `deep` includes all skills."""
        known = self.ledger.list_installed()
        results: list[AuditResult] = []
        for entry in self._store.scan().entries:
            source = known.get(entry.name)
            if source is None and not deep:
                continue
            tree = read_tree(Path(entry.folder))
            result = AuditResult(
                name=entry.name,
                source=source.source if source else self._store.provenance(entry),
                scan=scan_files(tree),
                edited=source is not None and content_hash(tree) != source.digest,
            )
            results.append(result)
        return tuple(results)

    def _install_path(
        self, name: str, category: str, old: InstalledSkill | None
    ) -> tuple[str, Tree]:
        present = self._store.scan().find(name)
        if old is not None:
            folder = self.ledger.folder_of(name, old)
            return old.install_path, read_tree(folder) if folder.is_dir() else {}
        if present is not None and present.kind == "home":
            raise UsageError(
                f"The skill {name} already exists ({present.folder}); give another --name."
            )
        return skill_path(name, category), {}

    def _entry(self, name: str) -> InstalledSkill:
        known = self.ledger.list_installed()
        if name not in known:
            raise NotFound(
                f"{name!r} was not installed from the hub; `hermes skills list` shows all skills.",
                near=tuple(known)[:5],
            )
        return known[name]

    def _audit(self, action: str, prepared: PreparedInstall) -> None:
        listing = prepared.package.listing
        self.ledger.append_audit(
            action,
            prepared.name,
            f"{listing.source}:{listing.identifier}",
            listing.trust,
            prepared.scan.verdict,
            f"sha256:{prepared.digest}",
        )


def _validated_files(package: SkillPackage, name: str) -> tuple[Tree, Skill]:
    """Validate the files of a package and drop hidden ones. With `name`, rename the skill."""
    plain = {path: data for path, data in package.files.items() if not _HIDDEN.search(path)}
    files = {safe_member(path): data for path, data in plain.items()}
    check_tree({}, files, strict=False)
    text = files[MAIN].decode("utf-8")
    skill = parse_skill(text)[0]
    if not name or name == skill.name:
        return files, skill
    check_name(name)
    rows = text.split("\n")
    for number, row in enumerate(rows):
        if row.startswith("name:") and skill.name in row:
            rows[number] = f"name: {name}"
            files[MAIN] = "\n".join(rows).encode()
            return files, replace(skill, name=name)
    raise UsageError(f"{MAIN} has no line `name: {skill.name}`; install it without --name.")
