"""Finds plugins by their manifests, without running their code."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal

from hermes.codec.values import Value, replace
from hermes.core.errors import ConfigError
from hermes.plugins.manifest import FILE, PluginManifest, manifest_of_module, read_manifest

# In ascending precedence.
Source = Literal["bundled", "pip", "user", "project"]
CATEGORIES = ("image_gen", "memory", "context_engine", "platforms", "browser", "tts", "stt", "web")


class FoundPlugin(Value):
    """`place` is the folder or file. A pip plugin is `module`; `attribute` names its function if
    not `register`. Without a manifest, `fault` says why; `overrides` is the source
    of the plugin that it replaces."""

    key: str
    source: Source
    place: str
    manifest: PluginManifest | None = None
    fault: str = ""
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
                if found.manifest and (category := GROUPS[point.group]):
                    found = replace(found, manifest=replace(found.manifest, category=category))
                yield found


def _describe(name: str, module: str, attribute: str, where: Sequence[str]) -> FoundPlugin:
    root, place = _locate(module, where)
    if place is None:
        fault = f"The module {module} of the entry point {name} is missing."
        return FoundPlugin(key=name, source="pip", place=module, fault=fault)
    file = place / "__init__.py" if place.is_dir() else place
    manifest, fault = _read(place / FILE if (place / FILE).is_file() else file)
    # The whole top-level package, so that everything imported is hashed.
    top = module.partition(".")[0]
    whole = Path(root, top) if Path(root, top).is_dir() else place
    return FoundPlugin(
        key=name,
        source="pip",
        place=str(whole),
        manifest=manifest,
        fault=fault,
        module=module,
        attribute=attribute,
    )


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


def _read(file: Path) -> tuple[PluginManifest | None, str]:
    """Returns the manifest, or why there is none."""
    try:
        return (read_manifest if file.name == FILE else manifest_of_module)(file), ""
    except ConfigError as error:
        return None, str(error)


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
    every = (
        in_folder(Path(places.bundled), "bundled") if places.bundled else (),
        find_installed(places.paths) if places.pip else (),
        in_folder(Path(places.user), "user"),
        in_folder(Path(places.project), "project") if places.project else (),
    )
    for each in chain.from_iterable(every):
        held = found.get(each.key)
        if held is None:
            found[each.key] = each
        elif held.source != each.source and (
            # Memory plugins must not be replaced silently.
            not (held.trusted and held.key.startswith("memory/"))
            or held.key in places.allow_override
        ):
            log.info("a plugin overrides another", extra={"key": each.key, "source": held.source})
            found[each.key] = replace(each, overrides=held.source)
        else:
            log.warning("a plugin must not override another", extra={"key": each.key})
    return dict(sorted(found.items()))


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
            yield from _one(entry, entry.stem, source)


def _one(place: Path, key: str, source: Source) -> Iterator[FoundPlugin]:
    file = place / FILE if place.is_dir() else place
    if file.exists():
        manifest, fault = _read(file)
        yield FoundPlugin(key=key, source=source, place=str(place), manifest=manifest, fault=fault)
    elif source != "bundled":
        fault = f"{FILE} is missing."
        yield FoundPlugin(key=key, source=source, place=str(place), fault=fault)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(each for each in folder.iterdir() if not each.name.startswith((".", "__")))
    except OSError:
        return []
