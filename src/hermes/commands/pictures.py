"""Checks attached images and copies them to where messages refer to them."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

from hermes.app.build import App
from hermes.codec.whole_files import replace_file
from hermes.core.errors import UsageError
from hermes.core.messages import Image

MAX_IMAGE_BYTES = 20 * 1024 * 1024
# Magic bytes, media type and file extension.
IMAGE_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png", ".png"),
    (b"\xff\xd8\xff", "image/jpeg", ".jpg"),
    (b"GIF87a", "image/gif", ".gif"),
    (b"GIF89a", "image/gif", ".gif"),
)


async def attach_image(app: App, path: Path) -> Image:
    """The image as part of a message; UsageError when it is invalid."""
    return await asyncio.to_thread(_store_file, app, path)


async def store_image(app: App, data: bytes) -> Image:
    """The same for image data without a file."""
    return await asyncio.to_thread(_keep, app, data, "The image")


def _store_file(app: App, path: Path) -> Image:
    try:
        # One byte over the limit is enough to detect a larger file.
        with path.open("rb") as file:
            data = file.read(MAX_IMAGE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}).") from error
    return _keep(app, data, str(path))


def _keep(app: App, data: bytes, name: str) -> Image:
    if len(data) > MAX_IMAGE_BYTES:
        raise UsageError(f"{name} is larger than {MAX_IMAGE_BYTES // 1024 // 1024} MB.")
    media_type, ending = image_kind(name, data)
    folder = app.home.ensure_folder(app.home.cache / "images")
    kept = folder / f"{hashlib.sha256(data).hexdigest()}{ending}"
    if not kept.exists():
        replace_file(kept, data)
    return Image(file=str(kept), media_type=media_type)


def image_kind(name: str, data: bytes) -> tuple[str, str]:
    """The media type and extension of an image; UsageError for other data."""
    for beginning, media_type, ending in IMAGE_KINDS:
        if data.startswith(beginning):
            return media_type, ending
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp", ".webp"
    raise UsageError(f"{name} is not an image; supported are PNG, JPEG, GIF and WebP.")
