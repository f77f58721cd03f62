"""Stores images in private files, and removes old ones."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from hermes.core.world import World
from hermes.images.faults import ImageFault
from hermes.images.pictures import EXTENSIONS, media_type

DAY_SECONDS = 86_400
# Images that messages refer to are named by their hash, and stay.
_OURS = re.compile(r".+_\d{8}_\d{6}_[0-9a-f]{8}\.\w+")


class ImageCache:
    """The folder `cache/images` of a home."""

    def __init__(self, folder: Path, world: World) -> None:
        self.folder = folder
        self._world = world

    def keep(self, data: bytes, *, prefix: str, extension: str = "png") -> Path:
        """Write atomically and return the absolute path. The content decides the extension, not
        `extension`."""
        ending = EXTENSIONS.get(media_type(data), extension.lstrip(".") or "png")
        stamp = time.strftime("%Y%m%d_%H%M%S", time.localtime(self._world.clock.now()))
        name = f"{_safe(prefix)}_{stamp}_{self._world.chance.getrandbits(32):08x}.{ending}"
        path = self.folder.absolute() / name
        partial = path.with_name(f".{name}.part")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            partial.touch(mode=0o600, exist_ok=False)
            partial.write_bytes(data)
            partial.replace(path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise ImageFault(
                f"{path} cannot be written ({error.strerror}).", kind="io_error"
            ) from error
        return path

    def sweep(self, *, max_days: float = 7, max_bytes: int = 500 * 1024 * 1024) -> int:
        """Remove files older than that, then the oldest until the rest is small enough; return how
        many."""
        now, removed, kept = self._world.clock.now(), 0, 0
        for modified, size, path in sorted(self._files(), reverse=True):
            if now - modified > max_days * DAY_SECONDS or kept + size > max_bytes:
                path.unlink(missing_ok=True)
                removed += 1
            else:
                kept += size
        return removed

    def _files(self) -> list[tuple[float, int, Path]]:
        found = []
        try:
            for entry in os.scandir(self.folder):
                if _OURS.fullmatch(entry.name) or entry.name.endswith(".part"):
                    info = entry.stat(follow_symlinks=False)
                    found.append((info.st_mtime, info.st_size, Path(entry.path)))
        except OSError:
            return found
        return found


def _safe(prefix: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", prefix).strip("-._")[:60] or "image"
