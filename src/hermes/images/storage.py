"""Images as bytes and in the cache folder, and the error of image generation."""

from __future__ import annotations

import base64
import binascii
import os
import re
import time
from pathlib import Path

from hermes.core.errors import HermesError
from hermes.core.world import World


class ImageFault(HermesError):
    """An image could not be generated or read. `kind` is the `error_type` of the answer: one of
    `provider.ERROR_TYPES`."""

    def __init__(self, message: str, *, kind: str = "provider_error") -> None:
        super().__init__(message)
        self.kind = kind


MAX_BYTES = 25 * 1024 * 1024
EXTENSIONS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/bmp": "bmp",
    "image/avif": "avif",
}
_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
)
_DATA_URL = re.compile(r"data:[\w.+-]*/?[\w.+-]*(?:;[\w=.+-]+)*?;base64,", re.IGNORECASE)


def media_type(data: bytes) -> str:
    """Return the media type by content, or ""."""
    for beginning, kind in _BEGINNINGS:
        if data.startswith(beginning):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data[4:12] in (b"ftypavif", b"ftypavis"):
        return "image/avif"
    return ""


def decode_base64(text: str) -> bytes:
    """Decode base64 text, with or without `data:…;base64,` before it; raise ImageFault."""
    if found := _DATA_URL.match(text[:200]):
        text = text[found.end() :]
    if len(text) * 3 // 4 > MAX_BYTES + 3:
        raise too_large_error(MAX_BYTES)
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ImageFault("The image is not valid base64.", kind="io_error") from error
    if not data:
        raise ImageFault("The image is empty.", kind="io_error")
    return data


def data_url(data: bytes) -> str:
    kind = media_type(data) or "application/octet-stream"
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def file_name(data: bytes) -> str:
    return f"image.{EXTENSIONS.get(media_type(data), 'png')}"


def too_large_error(max_bytes: int) -> ImageFault:
    return ImageFault(f"The image is larger than {max_bytes // 1024 // 1024} MB.", kind="io_error")


def check_image(data: bytes, *, max_bytes: int = MAX_BYTES, kind: str = "io_error") -> bytes:
    """Return the same bytes if they are an image of acceptable size; raise ImageFault."""
    if len(data) > max_bytes:
        raise too_large_error(max_bytes)
    if not media_type(data):
        raise ImageFault("It is not a PNG, JPEG, GIF, WebP, BMP or AVIF image.", kind=kind)
    return data


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
        safe = re.sub(r"[^A-Za-z0-9._-]+", "-", prefix).strip("-._")[:60] or "image"
        name = f"{safe}_{stamp}_{self._world.chance.getrandbits(32):08x}.{ending}"
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
        """Remove files that are too old, then the oldest ones until the rest is small enough.
        Return how many were removed."""
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
