"""A plugin that was found: where it comes from, what it is, and what is wrong with it."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value
from hermes.plugins.manifest import Manifest

# Low to high: a later one replaces an earlier one of the same key.
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


class Found(Value):
    """`place` is its folder or file. One that is installed by pip is found in `root` as `module`,
    and `attribute` is its function if that is not called `register`. Without a manifest, `fault`
    says why; `overrides` is the source whose plugin of the same key it replaces."""

    key: str
    source: Source
    place: str
    manifest: Manifest | None = None
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
        """It came with the program."""
        return self.source == "bundled"
