"""Caches what plugins register, so that most sessions start none."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.plugins.births import PluginHost, file_name
from hermes.plugins.found import FoundPlugin
from hermes.plugins.rules import PluginRules
from hermes.plugins.surface import Surface

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
