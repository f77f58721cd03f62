"""Skill source: optional skills shipped with Hermes."""

from __future__ import annotations

from pathlib import Path

from hermes.core.errors import NotFound
from hermes.skills.files import read_tree
from hermes.skills.hub.listing import SkillListing, SkillPackage, after_prefix, count_matches
from hermes.skills.scan import SkillEntry, SkillRoot, SkillScanner


class Official:
    """`folders` are searched in order; earlier ones shadow later ones."""

    id = "official"

    def __init__(self, folders: tuple[Path, ...], cache: Path) -> None:
        self._scan = SkillScanner(tuple(SkillRoot(path=str(each)) for each in folders), cache)

    def claims(self, identifier: str) -> bool:
        return bool(after_prefix(identifier, self.id))

    async def search(self, query: str, limit: int) -> tuple[SkillListing, ...]:
        ranked = [
            (count_matches(query, entry.name, entry.skill.description, *entry.skill.tags), entry)
            for entry in self._scan.scan().entries
        ]
        best = sorted((each for each in ranked if each[0]), key=lambda each: -each[0])
        return tuple(self._listing(entry) for _, entry in best[:limit])

    async def package(self, identifier: str) -> SkillPackage:
        name = after_prefix(identifier, self.id).split("/")[-1]
        entry = self._scan.scan().find(name)
        if entry is None:
            near = tuple(each.name for each in self._scan.scan().entries)[:5]
            raise NotFound(f"Hermes ships no skill {name!r}.", near=near)
        return SkillPackage(listing=self._listing(entry), files=read_tree(Path(entry.folder)))

    def _listing(self, entry: SkillEntry) -> SkillListing:
        return SkillListing(
            source=self.id,
            identifier=f"{self.id}/{entry.category}/{entry.name}",
            name=entry.name,
            description=entry.skill.description,
            trust="builtin",
            version=entry.skill.version,
        )
