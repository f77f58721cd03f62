"""Copies the bundled skills into a home without overwriting edits."""

from __future__ import annotations

from pathlib import Path

from hermes.codec.atomic_files import replace_file
from hermes.codec.values import Value
from hermes.core.errors import NotFound
from hermes.skills.discovery import CATEGORY_FILE, SkillEntry, SkillRoot, SkillScanner
from hermes.skills.files import (
    Tree,
    content_hash,
    folder_hash,
    lock_skills,
    read_tree,
    replace_folder,
)
from hermes.skills.skill import MAIN

MANIFEST = ".bundled_manifest"
OPT_OUT = ".no-bundled-skills"
BUNDLED_SKILLS = Path(__file__).with_name("bundled")
OPTIONAL = Path(__file__).with_name("optional")


class SeedResult(Value):
    """Names of added, updated and (because edited) kept skills."""

    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


class SkillSeeder:
    """Copies bundled skills from `source` to the home's skills in `folder`. Seeding is skipped
    while the fingerprint of the bundled skills is unchanged."""

    def __init__(self, folder: Path, cache: Path, source: Path = BUNDLED_SKILLS) -> None:
        self._folder = folder
        self._source = source
        self._cache = cache
        self._fingerprint_file = cache.with_name("skills-seeded")

    def manifest(self) -> dict[str, str]:
        """Return the hashes of seeded skills by name."""
        try:
            text = (self._folder / MANIFEST).read_text(encoding="utf-8")
        except (OSError, UnicodeError):
            return {}
        pairs = (line.partition(":") for line in text.splitlines() if ":" in line)
        return {name: digest for name, _, digest in pairs}

    def list_bundled(self) -> tuple[SkillEntry, ...]:
        cache = self._cache.with_name("skills-shipped.json")
        return SkillScanner((SkillRoot(path=str(self._source)),), cache).scan().entries

    def opted_out(self) -> bool:
        return (self._folder / OPT_OUT).exists()

    def opt(self, *, out: bool) -> None:
        marker = self._folder / OPT_OUT
        if out:
            replace_file(marker, b"Bundled skills are not copied here.\n")
        else:
            marker.unlink(missing_ok=True)
            self._fingerprint_file.unlink(missing_ok=True)

    def seed_if_new(self, version: str) -> SeedResult:
        """Seed the home after an update or on first use. Every start calls this."""
        fingerprint = self._fingerprint(version)
        try:
            before = self._fingerprint_file.read_text(encoding="utf-8")
        except (OSError, UnicodeError):
            before = ""
        is_current = before == fingerprint and (self._folder / MANIFEST).exists()
        if is_current or self.opted_out():
            return SeedResult()
        done = self.seed()
        replace_file(self._fingerprint_file, fingerprint.encode(), durable=False)
        return done

    def seed(self) -> SeedResult:
        with lock_skills(self._folder):
            known = self.manifest()
            added, updated, kept = [], [], []
            own = self._own_names()
            for entry in self.list_bundled():
                tree = read_tree(Path(entry.folder))
                digest, before = content_hash(tree), known.get(entry.name)
                folder = own.get(entry.name)
                present = folder_hash(folder) if folder else ""
                if folder is None and before is None:
                    self._put(entry, tree, self._folder / entry.category / entry.name)
                    added.append(entry.name)
                elif folder is not None and before is None and present != digest:
                    # A user's skill of that name.
                    continue
                elif folder is not None and before not in (None, digest):
                    if present != before:
                        kept.append(entry.name)
                        continue
                    self._put(entry, tree, folder)
                    updated.append(entry.name)
                known[entry.name] = digest
            self._write_manifest(known, durable=False)
        return SeedResult(added=tuple(added), updated=tuple(updated), kept=tuple(kept))

    def is_as_shipped(self, path: Path) -> bool:
        """Return whether a file belongs to an unmodified bundled skill."""
        home = self._folder.resolve()
        if not path.is_relative_to(home):
            return False
        for folder in path.relative_to(home).parents:
            if folder != Path() and (home / folder / MAIN).is_file():
                source = self._source / folder
                if not (source / MAIN).is_file():
                    return False
                return folder_hash(source) == folder_hash(home / folder)
        return False

    def list_modified(self) -> tuple[str, ...]:
        """Return bundled skills that were edited."""
        known, own = self.manifest(), self._own_names()
        return tuple(
            name
            for name, digest in known.items()
            if (folder := own.get(name)) and folder_hash(folder) != digest
        )

    def list_removed(self) -> tuple[str, ...]:
        """Return bundled skills that were removed."""
        own = self._own_names()
        return tuple(name for name in self.manifest() if name not in own)

    def tree(self, name: str) -> tuple[Tree, str]:
        """Return the files of a bundled skill and its category. Raises NotFound."""
        for entry in self.list_bundled():
            if entry.name == name:
                return read_tree(Path(entry.folder)), entry.category
        raise NotFound(f"Hermes ships no skill {name!r}; check the name.")

    def forget(self, name: str, digest: str = "") -> None:
        """Remove the skill from the manifest or, with `digest`, updates its hash."""
        with lock_skills(self._folder):
            known = {key: each for key, each in self.manifest().items() if key != name}
            if digest:
                known[name] = digest
            self._write_manifest(known)

    def _write_manifest(self, known: dict[str, str], *, durable: bool = True) -> None:
        lines = "".join(f"{name}:{digest}\n" for name, digest in sorted(known.items()))
        replace_file(self._folder / MANIFEST, lines.encode(), durable=durable)

    def _own_names(self) -> dict[str, Path]:
        """Return the folders of the home's skills by name."""
        found = SkillScanner((SkillRoot(path=str(self._folder)),), self._cache).scan()
        names = {Path(each.folder).name: Path(each.folder) for each in found.broken}
        return names | {each.name: Path(each.folder) for each in found.entries}

    def _put(self, entry: SkillEntry, tree: Tree, target: Path) -> None:
        replace_folder(target, tree, self._folder / ".staging", durable=False)
        source = Path(entry.folder).parent / CATEGORY_FILE
        there = target.parent / CATEGORY_FILE
        if entry.category and source.is_file() and not there.exists():
            replace_file(there, source.read_bytes(), durable=False)

    def _fingerprint(self, version: str) -> str:
        """Return a cheap fingerprint of the program version and all bundled SKILL.md files."""
        lines = [f"{version} {self._source}"]
        for main in sorted(self._source.glob(f"*/*/{MAIN}")):
            stat = main.stat()
            lines.append(f"{main.parent.name} {stat.st_mtime_ns} {stat.st_size}")
        return "\n".join(lines)
