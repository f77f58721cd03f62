"""Prepares the start of a plugin: verified copy, settings, quota and cached surface."""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path

from hermes.codec.atomic_files import PRIVATE, replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import ConfigError
from hermes.plugins.contents import hash_of, read_contents, write_copy
from hermes.plugins.discovery import FoundPlugin
from hermes.plugins.permissions import PluginRules
from hermes.plugins.sandbox import PluginHost, PluginSandbox, secrets_of
from hermes.plugins.surface import Surface

log = logging.getLogger(__name__)

MEGABYTE = 1024 * 1024
# Counting stops at this number of files.
MOST_FILES = 50_000


def folder_size(folder: Path) -> int:
    """Return the bytes on disk below a folder, without following links; a huge value for too many
    files."""
    total = files = 0
    for directory, _, names in os.walk(folder):
        for name in names:
            files += 1
            if files > MOST_FILES:
                return 1 << 62
            try:
                found = os.lstat(os.path.join(directory, name))  # noqa: PTH118
            except OSError:
                continue
            total += found.st_blocks * 512
    return total


def quota_fault(folder: Path, most_mb: int) -> str:
    """Return why a folder is too large, or ""."""
    size = folder_size(folder)
    if size <= most_mb * MEGABYTE:
        return ""
    much = "too many files" if size >= 1 << 62 else f"{size // MEGABYTE} MB"
    return f"stores {much} in {folder}; the limit is {most_mb} MB (plugins.data_mb)"


class _CachedSurface(Value):
    mark: str
    surface: Surface


class PluginLauncher:
    """Prepares starts, and caches what plugins register: one file per plugin, valid for the same
    contents, settings and variables."""

    def __init__(self, rules: PluginRules, host: PluginHost) -> None:
        self._rules = rules
        self._host = host
        self._cache = Path(host.home, "cache", "plugins")

    def sandbox(self, plugin: FoundPlugin) -> tuple[PluginSandbox, JsonObject]:
        message = self.start_message(plugin)
        sandbox = PluginSandbox(
            plugin.key,
            self._host,
            self._rules.grants(plugin),
            copy=message["copy"],
            data=message["data_dir"],
            secrets=message["secrets"],
            sandbox=self._rules.sandbox,
            means=self._rules.means,
        )
        return sandbox, message

    def start_message(self, plugin: FoundPlugin) -> JsonObject:
        """Build the start message with a copy of the approved files, since the originals may
        change. Bundled plugins run in place."""
        assert plugin.manifest is not None
        data = Path(self._host.home, "plugin-data", plugin.key)
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        copy = Path(plugin.path) if plugin.trusted else self._copy(plugin)
        grants = self._rules.grants(plugin)
        manifest = plugin.manifest
        manifest_fields = {n: getattr(manifest, n) for n in manifest.__struct_fields__}
        path = copy if plugin.trusted or plugin.module else copy / Path(plugin.path).name
        return {
            "place": str(path),
            "copy": str(copy),
            "module": plugin.module,
            "attribute": plugin.attribute,
            # With the fields that have their default value.
            "manifest": decode(dict, encode(manifest_fields)),
            "config": self._rules.entry(plugin).config,
            "data_dir": str(data),
            "profile": self._host.profile,
            "network": grants.network,
            "processes": grants.processes,
            "secrets": secrets_of(plugin.manifest.variables, grants, self._host.variables),
        }

    def _copy(self, plugin: FoundPlugin) -> Path:
        contents = read_contents(Path(plugin.path))
        now = hash_of(contents)
        if now != plugin.hash:
            raise ConfigError(
                f"Its files have changed; review them with `hermes plugins enable {plugin.key}`."
            )
        top = Path(plugin.path).name
        if Path(plugin.path).is_dir():
            contents = {f"{top}/{name}": data for name, data in contents.items()}
        folder = self._cache / "copies" / f"{_file_name(plugin.key)}-{now}"
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return write_copy(contents, folder)

    def cached_surface(self, plugin: FoundPlugin) -> Surface | None:
        try:
            cached = decode(_CachedSurface, self._surface_file(plugin).read_bytes())
        except (OSError, DecodeError):
            return None
        return cached.surface if cached.mark == self._cache_key(plugin) else None

    def cache_surface(self, plugin: FoundPlugin, surface: Surface) -> None:
        try:
            cached = _CachedSurface(mark=self._cache_key(plugin), surface=surface)
            replace_file(self._surface_file(plugin), encode(cached), mode=PRIVATE, durable=False)
        except OSError:
            log.warning("the surface of a plugin could not be cached", extra={"plugin": plugin.key})

    def _cache_key(self, plugin: FoundPlugin) -> str:
        wanted = plugin.manifest.variables if plugin.manifest else ()
        present = sorted(name for name in wanted if self._host.variables.get(name))
        facts = (plugin.hash, present, self._rules.entry(plugin), self._host.version)
        return hashlib.sha256(encode(facts)).hexdigest()

    def _surface_file(self, plugin: FoundPlugin) -> Path:
        return self._cache / "surfaces" / f"{_file_name(plugin.key)}.json"


def _file_name(key: str) -> str:
    return key.replace("/", "--")
