"""Images as bytes: media types from the content, and base64."""

from __future__ import annotations

import base64
import binascii
import re

from hermes.images.faults import ImageFault

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


def decode_base64(text: str, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Decode base64 text, with or without `data:…;base64,` before it; ImageFault."""
    if found := _DATA_URL.match(text[:200]):
        text = text[found.end() :]
    if len(text) * 3 // 4 > max_bytes + 3:
        raise too_large_error(max_bytes)
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


def file_name(data: bytes, stem: str = "image") -> str:
    return f"{stem}.{EXTENSIONS.get(media_type(data), 'png')}"


def too_large_error(max_bytes: int) -> ImageFault:
    return ImageFault(f"The image is larger than {max_bytes // 1024 // 1024} MB.", kind="io_error")


def check_image(data: bytes, *, max_bytes: int = MAX_BYTES, kind: str = "io_error") -> bytes:
    """Return the same bytes if they are an image of acceptable size; ImageFault."""
    if len(data) > max_bytes:
        raise too_large_error(max_bytes)
    if not media_type(data):
        raise ImageFault("It is not a PNG, JPEG, GIF, WebP, BMP or AVIF image.", kind=kind)
    return data
