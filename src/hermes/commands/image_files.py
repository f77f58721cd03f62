"""Image files that can be attached to a message: their kinds and limits."""

from __future__ import annotations

from pathlib import Path

from hermes.commands.formatting import format_bytes
from hermes.core.errors import UsageError

MAX_IMAGE_BYTES = 20 * 1024 * 1024
# Enough to tell the kind of a file.
HEAD_BYTES = 16
# Magic bytes, media type and file extension.
IMAGE_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png", ".png"),
    (b"\xff\xd8\xff", "image/jpeg", ".jpg"),
    (b"GIF87a", "image/gif", ".gif"),
    (b"GIF89a", "image/gif", ".gif"),
)


def image_kind(name: str, data: bytes) -> tuple[str, str]:
    """The media type and extension of an image; raises UsageError for other data."""
    for beginning, media_type, ending in IMAGE_KINDS:
        if data.startswith(beginning):
            return media_type, ending
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp", ".webp"
    raise UsageError(f"{name} is not an image; supported are PNG, JPEG, GIF and WebP.")


def check_image(path: Path) -> str:
    """A description of an image file; UsageError if it is missing, too large or no image."""
    if not path.is_file():
        raise UsageError(f"There is no file {path}; give a relative or absolute path.")
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        size = path.stat().st_size
    except OSError as error:
        reason = f"{path} cannot be read ({error.strerror}); check the path."
        raise UsageError(reason) from error
    media_type, _ = image_kind(str(path), head)
    if size > MAX_IMAGE_BYTES:
        limit = MAX_IMAGE_BYTES // 1024 // 1024
        raise UsageError(f"{path} has {format_bytes(size)}; the limit is {limit} MB.")
    return f"{path.name} ({media_type.removeprefix('image/').upper()}, {format_bytes(size)})"
