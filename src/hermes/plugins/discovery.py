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
    """A plugin that was found, usable or not."""

    key: str
    source: Source
    path: str  # the folder or file
    manifest: PluginManifest | None = None
    fault: str = ""  # why there is no manifest
    module: str = ""  # the module of a pip plugin
    attribute: str = ""  # the function of a pip plugin, if not `register`
    overrides: str = ""  # the source of the plugin that it replaces
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
    """Yield plugins on the import path or on `paths`."""
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
                plugin = _describe(point.name, point.module, point.attr or "", where)
                if plugin.manifest and (category := GROUPS[point.group]):
                    plugin = replace(plugin, manifest=replace(plugin.manifest, category=category))
                yield plugin


def _describe(name: str, module: str, attribute: str, where: Sequence[str]) -> FoundPlugin:
    root, path = _locate(module, where)
    if path is None:
        fault = f"The module {module} of the entry point {name} is missing."
        return FoundPlugin(key=name, source="pip", path=module, fault=fault)
    file = path / "__init__.py" if path.is_dir() else path
    manifest, fault = _read(path / FILE if (path / FILE).is_file() else file)
    # The whole top-level package, so that everything imported is hashed.
    top = module.partition(".")[0]
    whole = Path(root, top) if Path(root, top).is_dir() else path
    return FoundPlugin(
        key=name,
        source="pip",
        path=str(whole),
        manifest=manifest,
        fault=fault,
        module=module,
        attribute=attribute,
    )


def _locate(module: str, where: Sequence[str]) -> tuple[str, Path | None]:
    """Search by path, because Python's finder would import parent packages."""
    inner = module.replace(".", "/")
    for folder in where:
        package, file = Path(folder, inner), Path(folder, f"{inner}.py")
        if (package / "__init__.py").is_file():
            return folder, package
        if file.is_file():
            return folder, file
    return "", None


def _read(file: Path) -> tuple[PluginManifest | None, str]:
    """Return the manifest, or why there is none."""
    try:
        return (read_manifest if file.name == FILE else manifest_of_module)(file), ""
    except ConfigError as error:
        return None, str(error)


BUNDLED = Path(__file__).with_name("bundled")
PROJECT = Path(".hermes", "plugins")


class SearchPaths(Value):
    """The folders and import paths that are searched for plugins."""

    user: str
    bundled: str = str(BUNDLED)
    project: str = ""  # the plugin folder of a project, if enabled
    pip: bool = True
    paths: tuple[str, ...] = ()  # import paths; empty means those of this process
    allow_override: tuple[str, ...] = ()


def discover(search_paths: SearchPaths) -> dict[str, FoundPlugin]:
    """Return plugins by key; a plugin of a higher source overrides one of a lower source, and this
    is logged."""
    plugins: dict[str, FoundPlugin] = {}
    every = (
        in_folder(Path(search_paths.bundled), "bundled") if search_paths.bundled else (),
        find_installed(search_paths.paths) if search_paths.pip else (),
        in_folder(Path(search_paths.user), "user"),
        in_folder(Path(search_paths.project), "project") if search_paths.project else (),
    )
    for each in chain.from_iterable(every):
        held = plugins.get(each.key)
        if held is None:
            plugins[each.key] = each
        elif held.source != each.source and (
            # Memory plugins must not be replaced silently.
            not (held.trusted and held.key.startswith("memory/"))
            or held.key in search_paths.allow_override
        ):
            log.info("a plugin overrides another", extra={"key": each.key, "source": held.source})
            plugins[each.key] = replace(each, overrides=held.source)
        else:
            log.warning("a plugin must not override another", extra={"key": each.key})
    return dict(sorted(plugins.items()))


def in_folder(folder: Path, source: Source) -> Iterator[FoundPlugin]:
    """Find `NAME/`, `CATEGORY/NAME/` and, outside bundled plugins, `NAME.py`."""
    for entry in _entries(folder):
        if entry.name in CATEGORIES and entry.is_dir():
            for inner in _entries(entry):
                if inner.is_dir():
                    yield from _one(inner, f"{entry.name}/{inner.name}", source)
        elif entry.is_dir():
            yield from _one(entry, entry.name, source)
        elif entry.suffix == ".py" and source != "bundled" and entry.stem not in CATEGORIES:
            yield from _one(entry, entry.stem, source)


def _one(path: Path, key: str, source: Source) -> Iterator[FoundPlugin]:
    file = path / FILE if path.is_dir() else path
    if file.exists():
        manifest, fault = _read(file)
        yield FoundPlugin(key=key, source=source, path=str(path), manifest=manifest, fault=fault)
    elif source != "bundled":
        fault = f"{FILE} is missing."
        yield FoundPlugin(key=key, source=source, path=str(path), fault=fault)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(each for each in folder.iterdir() if not each.name.startswith((".", "__")))
    except OSError:
        return []
