"""A discovered plugin: source, manifest and errors."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value
from hermes.plugins.manifest import PluginManifest

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
