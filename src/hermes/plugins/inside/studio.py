"""Files and downloads of image providers in a sandbox: the host saves, fetches and reads for them.
Standard library only."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

Ask = Callable[[str, dict[str, Any]], Any]

# Of base64 text, so that a message stays below the limit of the channel.
CHUNK_CHARS = 600_000


class HostImageCache:
    """Saves images in the cache of the host, in pieces."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def keep(self, data: bytes, *, prefix: str, extension: str = "png") -> Path:
        """Return the path on the host. It cannot be opened in the sandbox."""
        text = base64.b64encode(data).decode()
        for at in range(0, len(text), CHUNK_CHARS):
            self._ask("image.chunk", {"data": text[at : at + CHUNK_CHARS]})
        return Path(self._ask("image.save", {"prefix": prefix, "extension": extension}))


class HostStudio:
    """What the helpers of image providers use inside of a sandbox."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.cache = HostImageCache(ask)

    async def download(self, url: str, *, timeout: float, max_bytes: int) -> bytes:
        request = {"url": url, "timeout": timeout, "max_bytes": max_bytes}
        return base64.b64decode(self._ask("image.download", request))

    async def source(self, ref: str) -> tuple[bytes, str]:
        found = self._ask("image.source", {"ref": ref})
        return base64.b64decode(found["data"]), str(found["name"])


def use_host_studio(ask: Ask) -> AbstractContextManager[None]:
    """Let the helpers use the host, if the plugin has imported them and there is no studio yet."""
    helpers: Any = sys.modules.get("hermes.images.studio")
    if helpers is None or helpers.has_studio():
        return nullcontext()
    context: AbstractContextManager[None] = helpers.use_studio(HostStudio(ask))
    return context
