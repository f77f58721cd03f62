"""Finds plugins by their manifests, without running their code."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from hermes.codec.values import Value, replace
from hermes.core.errors import ConfigError
from hermes.plugins.manifest import FILE, PluginManifest, manifest_of_folder, manifest_of_module

# In ascending precedence.
Source = Literal["bundled", "pip", "user", "project"]
CATEGORIES = (
    "image_gen",
    "memory",
    "context_engine",
    "platforms",
    "browser",
    "tts",
    "stt",
    "web",
)


class FoundPlugin(Value):
    """`place` is the folder or file. A pip plugin is `module` in `root`; `attribute` names its
    function if not `register`. Without a manifest, `fault` says why; `overrides` is the source
    of the plugin that it replaces."""

    key: str
    source: Source
    place: str
    manifest: PluginManifest | None = None
    fault: str = ""
    root: str = ""
    module: str = ""
    attribute: str = ""
    overrides: str = ""
    hash: str = ""

    @property
    def name(self) -> str:
        return self.manifest.name if self.manifest else self.key.rpartition("/")[2]

    @property
    def category(self) -> str:
        folder = self.key.rpartition("/")[0]
        return folder or (self.manifest.category if self.manifest else "")

    @property
    def trusted(self) -> bool:
        """Returns whether it is bundled with Hermes."""
        return self.source == "bundled"


log = logging.getLogger(__name__)

GROUP = "hermes_agent.plugins"
# The second group is for memory providers and sets their category.
GROUPS = {GROUP: "", "hermes_agent.memory_providers": "memory"}


def find_installed(paths: Sequence[str] = ()) -> Iterator[FoundPlugin]:
    """Yields plugins on the import path or on `paths`."""
    # Slow to load: imports the email parser.
    from importlib.metadata import distributions

    where = list(paths) or [each for each in sys.path if each]
    seen: set[str] = set()
    for each in distributions(path=where):
        try:
            points = [point for point in each.entry_points if point.group in GROUPS]
        except Exception:
            log.warning("entry points of a distribution are unreadable", exc_info=True)
            continue
        for point in points:
            if point.name not in seen:
                seen.add(point.name)
                found = _describe(point.name, point.module, point.attr or "", where)
                yield _of_category(found, GROUPS[point.group])


def _describe(name: str, module: str, attribute: str, where: Sequence[str]) -> FoundPlugin:
    root, place = _locate(module, where)
    if place is None:
        fault = f"The module {module} of the entry point {name} is missing."
        return FoundPlugin(key=name, source="pip", place=module, fault=fault)
    try:
        manifest: PluginManifest | None = _read_point_manifest(place)
        fault = ""
    except ConfigError as error:
        manifest, fault = None, str(error)
    # The whole top-level package, so that everything imported is hashed.
    top = module.partition(".")[0]
    whole = Path(root, top) if Path(root, top).is_dir() else place
    return FoundPlugin(
        key=name,
        source="pip",
        place=str(whole),
        manifest=manifest,
        fault=fault,
        root=root,
        module=module,
        attribute=attribute,
    )


def _of_category(found: FoundPlugin, category: str) -> FoundPlugin:
    if not category or found.manifest is None:
        return found
    return replace(found, manifest=replace(found.manifest, category=category))


def _locate(module: str, where: Sequence[str]) -> tuple[str, Path | None]:
    """Searches by path, because Python's finder would import parent packages."""
    inner = module.replace(".", "/")
    for folder in where:
        package, file = Path(folder, inner), Path(folder, f"{inner}.py")
        if (package / "__init__.py").is_file():
            return folder, package
        if file.is_file():
            return folder, file
    return "", None


def _read_point_manifest(place: Path) -> PluginManifest:
    if place.is_dir():
        if (place / FILE).is_file():
            return manifest_of_folder(place)
        return manifest_of_module(place / "__init__.py")
    return manifest_of_module(place)


BUNDLED = Path(__file__).with_name("bundled")
PROJECT = Path(".hermes", "plugins")


class SearchPaths(Value):
    """Where to search. `project` is a project's plugin folder, if enabled. `paths` are import
    paths; empty means those of this process."""

    user: str
    bundled: str = str(BUNDLED)
    project: str = ""
    pip: bool = True
    paths: tuple[str, ...] = ()
    allow_override: tuple[str, ...] = ()


def discover(places: SearchPaths) -> dict[str, FoundPlugin]:
    """Returns plugins by key; a higher source overrides a lower one and is logged."""
    found: dict[str, FoundPlugin] = {}
    for each in _all(places):
        held = found.get(each.key)
        if held is None:
            found[each.key] = each
        elif _may_replace(held, each, places.allow_override):
            log.info("a plugin overrides another", extra={"key": each.key, "source": held.source})
            found[each.key] = replace(each, overrides=held.source)
        else:
            log.warning("a plugin must not override another", extra={"key": each.key})
    return dict(sorted(found.items()))


def _may_replace(held: FoundPlugin, by: FoundPlugin, allowed: Sequence[str]) -> bool:
    """Memory plugins must not be replaced silently."""
    if held.source == by.source:
        return False
    return not (held.trusted and held.key.startswith("memory/")) or held.key in allowed


def _all(places: SearchPaths) -> Iterator[FoundPlugin]:
    if places.bundled:
        yield from in_folder(Path(places.bundled), "bundled")
    if places.pip:
        yield from find_installed(places.paths)
    yield from in_folder(Path(places.user), "user")
    if places.project:
        yield from in_folder(Path(places.project), "project")


def in_folder(folder: Path, source: Source) -> Iterator[FoundPlugin]:
    """Finds `NAME/`, `CATEGORY/NAME/` and, outside bundled plugins, `NAME.py`."""
    for entry in _entries(folder):
        if entry.name in CATEGORIES and entry.is_dir():
            for inner in _entries(entry):
                if inner.is_dir():
                    yield from _one(inner, f"{entry.name}/{inner.name}", source)
        elif entry.is_dir():
            yield from _one(entry, entry.name, source)
        elif entry.suffix == ".py" and source != "bundled" and entry.stem not in CATEGORIES:
            yield from _file(entry, source)


def _one(folder: Path, key: str, source: Source) -> Iterator[FoundPlugin]:
    if not (folder / FILE).exists():
        log.debug("a folder has no manifest", extra={"folder": str(folder)})
        if source != "bundled":
            yield FoundPlugin(
                key=key, source=source, place=str(folder), fault=f"{FILE} is missing."
            )
        return
    try:
        manifest = manifest_of_folder(folder)
    except ConfigError as error:
        yield FoundPlugin(key=key, source=source, place=str(folder), fault=str(error))
        return
    log.debug("a folder is a plugin", extra={"folder": str(folder)})
    yield FoundPlugin(key=key, source=source, place=str(folder), manifest=manifest)


def _file(file: Path, source: Source) -> Iterator[FoundPlugin]:
    try:
        manifest = manifest_of_module(file)
    except ConfigError as error:
        yield FoundPlugin(key=file.stem, source=source, place=str(file), fault=str(error))
        return
    yield FoundPlugin(key=file.stem, source=source, place=str(file), manifest=manifest)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(each for each in folder.iterdir() if not each.name.startswith((".", "__")))
    except OSError:
        return []
