"""Prepares the start of a plugin: verified copy, settings, quota and cached surface."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable
from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import ConfigError
from hermes.plugins.contents import hash_of, read_contents, write_copy
from hermes.plugins.discovery import FoundPlugin
from hermes.plugins.manifest import PluginManifest
from hermes.plugins.permissions import PluginRules
from hermes.plugins.sandbox import PluginSandbox, SandboxConfig, secrets_of
from hermes.plugins.surface import Surface

MEGABYTE = 1024 * 1024
# Counting stops at this number of files.
MOST_FILES = 50_000


def folder_size(folder: Path) -> int:
    """Returns the bytes on disk below a folder, without following links; a huge value for too
    many files."""
    total = files = 0
    for place, _, names in os.walk(folder):
        for name in names:
            files += 1
            if files > MOST_FILES:
                return 1 << 62
            try:
                found = os.lstat(os.path.join(place, name))  # noqa: PTH118
            except OSError:
                continue
            total += found.st_blocks * 512
    return total


def quota_fault(folder: Path, most_mb: int) -> str:
    """Returns why a folder is too large, or ""."""
    size = folder_size(folder)
    if size <= most_mb * MEGABYTE:
        return ""
    much = "too many files" if size >= 1 << 62 else f"{size // MEGABYTE} MB"
    return f"stores {much} in {folder}; the limit is {most_mb} MB (plugins.data_mb)"


class PluginHost(Value):
    """Facts about the host. `variables` are those of the process and `.env`; `mask` redacts
    secrets in plugin logs."""

    home: str
    person: str
    variables: dict[str, str]
    version: str
    profile: str = "default"
    mask: Callable[[str], str] = str


class PluginLauncher:
    def __init__(self, rules: PluginRules, around: PluginHost) -> None:
        self._rules = rules
        self._around = around

    def sandbox(self, found: FoundPlugin) -> tuple[PluginSandbox, JsonObject]:
        birth = self.start_message(found)
        around, grants = self._around, self._rules.grants(found)
        assert found.manifest is not None
        setting = SandboxConfig(
            key=found.key,
            home=around.home,
            person=around.person,
            copy=str(birth["copy"]),
            data=str(birth["data_dir"]),
            log=str(Path(around.home, "logs", "plugins", f"{file_name(found.key)}.log")),
            grants=grants,
            wanted_env=found.manifest.variables,
            variables=around.variables,
            sandbox=self._rules.sandbox,
            means=self._rules.means,
            mask=around.mask,
        )
        return PluginSandbox(setting), birth

    def start_message(self, found: FoundPlugin) -> JsonObject:
        """Builds the start message with a copy of the approved files, since the originals may
        change. Bundled plugins run in place."""
        assert found.manifest is not None
        data = Path(self._around.home, "plugin-data", found.key)
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        copy = Path(found.place) if found.trusted else self._copy(found)
        grants = self._rules.grants(found)
        place = copy if found.trusted or found.module else copy / Path(found.place).name
        return {
            "place": str(place),
            "copy": str(copy),
            "module": found.module,
            "attribute": found.attribute,
            "manifest": _encode_manifest(found.manifest),
            "config": self._rules.entry(found).config,
            "data_dir": str(data),
            "profile": self._around.profile,
            "network": grants.network,
            "processes": grants.processes,
            "secrets": secrets_of(found.manifest.variables, grants, self._around.variables),
        }

    def _copy(self, found: FoundPlugin) -> Path:
        contents = read_contents(Path(found.place))
        now = hash_of(contents)
        if now != found.hash:
            raise ConfigError(
                f"Its files have changed; review them with `hermes plugins enable {found.key}`."
            )
        top = Path(found.place).name
        if Path(found.place).is_dir():
            contents = {f"{top}/{name}": data for name, data in contents.items()}
        folder = Path(
            self._around.home, "cache", "plugins", "copies", f"{file_name(found.key)}-{now}"
        )
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return write_copy(contents, folder)


def file_name(key: str) -> str:
    """Converts a key to a file name."""
    return key.replace("/", "--")


def _encode_manifest(manifest: PluginManifest) -> JsonObject:
    """Encodes all fields of the manifest."""
    fields: JsonObject = {name: getattr(manifest, name) for name in manifest.__struct_fields__}
    decoded: JsonObject = decode(dict, encode(fields))
    return decoded


log = logging.getLogger(__name__)


class _CachedSurface(Value):
    mark: str
    surface: Surface


class SurfaceCache:
    """One file per plugin, valid for the same contents, settings and variables."""

    def __init__(self, rules: PluginRules, around: PluginHost) -> None:
        self._rules = rules
        self._around = around
        self._folder = Path(around.home, "cache", "plugins", "surfaces")

    def get(self, found: FoundPlugin) -> Surface | None:
        try:
            cached = decode(_CachedSurface, self._file(found).read_bytes())
        except (OSError, DecodeError):
            return None
        return cached.surface if cached.mark == self._cache_key(found) else None

    def keep(self, found: FoundPlugin, surface: Surface) -> None:
        file = self._file(found)
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            partial = file.with_suffix(".new")
            partial.write_bytes(
                encode(_CachedSurface(mark=self._cache_key(found), surface=surface))
            )
            partial.replace(file)
        except OSError:
            log.warning("the surface of a plugin could not be cached", extra={"plugin": found.key})

    def _cache_key(self, found: FoundPlugin) -> str:
        wanted = found.manifest.variables if found.manifest else ()
        present = sorted(name for name in wanted if self._around.variables.get(name))
        facts = (found.hash, present, self._rules.entry(found), self._around.version)
        return hashlib.sha256(encode(facts)).hexdigest()

    def _file(self, found: FoundPlugin) -> Path:
        return self._folder / f"{file_name(found.key)}.json"
