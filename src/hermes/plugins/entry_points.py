"""Plugins that pip has installed: found by their entry points, read without importing them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes.codec.values import replace
from hermes.core.errors import ConfigError
from hermes.plugins.found import Found
from hermes.plugins.manifest import FILE, Manifest, manifest_of_folder, manifest_of_module

log = logging.getLogger(__name__)

GROUP = "hermes_agent.plugins"
# The second is for providers of memory, and says which category they have.
GROUPS = {GROUP: "", "hermes_agent.memory_providers": "memory"}


def installed(paths: Sequence[str] = ()) -> Iterator[Found]:
    """Those on the import path of this process, or of `paths`."""
    # Loads a parser of mails.
    from importlib.metadata import distributions

    where = list(paths) or [each for each in sys.path if each]
    seen: set[str] = set()
    for each in distributions(path=where):
        try:
            points = [point for point in each.entry_points if point.group in GROUPS]
        except Exception:
            log.warning("the entry points of a distribution cannot be read", exc_info=True)
            continue
        for point in points:
            if point.name not in seen:
                seen.add(point.name)
                found = _found(point.name, point.module, point.attr or "", where)
                yield _of_category(found, GROUPS[point.group])


def _found(name: str, module: str, attribute: str, where: Sequence[str]) -> Found:
    root, place = _located(module, where)
    if place is None:
        fault = f"The module {module} of the entry point {name} is not there."
        return Found(key=name, source="pip", place=module, fault=fault)
    try:
        manifest: Manifest | None = _manifest(place)
        fault = ""
    except ConfigError as error:
        manifest, fault = None, str(error)
    # The whole of what is imported on the way to it, so that all of it is looked at.
    top = module.partition(".")[0]
    whole = Path(root, top) if Path(root, top).is_dir() else place
    return Found(
        key=name,
        source="pip",
        place=str(whole),
        manifest=manifest,
        fault=fault,
        root=root,
        module=module,
        attribute=attribute,
    )


def _of_category(found: Found, category: str) -> Found:
    if not category or found.manifest is None:
        return found
    return replace(found, manifest=replace(found.manifest, category=category))


def _located(module: str, where: Sequence[str]) -> tuple[str, Path | None]:
    """Looked for by hand: Python itself would run the packages around it."""
    inner = module.replace(".", "/")
    for folder in where:
        package, file = Path(folder, inner), Path(folder, f"{inner}.py")
        if (package / "__init__.py").is_file():
            return folder, package
        if file.is_file():
            return folder, file
    return "", None


def _manifest(place: Path) -> Manifest:
    if place.is_dir():
        if (place / FILE).is_file():
            return manifest_of_folder(place)
        return manifest_of_module(place / "__init__.py")
    return manifest_of_module(place)
