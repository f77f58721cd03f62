"""Finds plugins installed by pip through entry points, without importing them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes.codec.values import replace
from hermes.core.errors import ConfigError
from hermes.plugins.found import FoundPlugin
from hermes.plugins.manifest import FILE, PluginManifest, manifest_of_folder, manifest_of_module

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
