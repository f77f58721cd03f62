"""Finds plugins by their manifests, without running their code."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes.codec.values import Value, replace
from hermes.core.errors import ConfigError
from hermes.plugins.entry_points import find_installed
from hermes.plugins.found import CATEGORIES, FoundPlugin, Source
from hermes.plugins.manifest import FILE, manifest_of_folder, manifest_of_module

log = logging.getLogger(__name__)

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
