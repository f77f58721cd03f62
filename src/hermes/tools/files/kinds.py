"""Classifies paths and contents for reading and writing text."""

from __future__ import annotations

import re

# Reading these never ends, waits for a person, or takes bytes from another reader.
_DEVICE = re.compile(
    r"/dev/(?!shm/)"
    r"|/proc/[^/]+/(task/[^/]+/)?fd(/|$)"
    r"|/proc/(kmsg|kcore)$"
    r"|/sys/kernel/(debug|tracing)/.*pipe"
)
_IMAGES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"BM.{4}\0\0\0\0", re.DOTALL), "image/bmp"),
    (re.compile(rb"II\*\0|MM\0\*"), "image/tiff"),
    (re.compile(rb"\0\0\x01\0[^\0]\0"), "image/x-icon"),
    (re.compile(rb"....ftyp(avif|avis)", re.DOTALL), "image/avif"),
    (re.compile(rb"....ftyp(heic|heix|mif1)", re.DOTALL), "image/heic"),
)
# Plain text with these extensions would be a file that no program opens.
OFFICE_SUFFIXES = (".docx", ".xlsx", ".pptx", ".odt", ".ods", ".pdf")


def is_device(path: str) -> bool:
    return _DEVICE.match(path) is not None


def image_type(data: bytes) -> str:
    """Return the media type of an image, or ""."""
    return next((kind for magic, kind in _IMAGES if magic.match(data)), "")


def suffix(path: str) -> str:
    """Return the lower-case extension of a file name, with its dot."""
    name = path.rsplit("/", 1)[-1]
    stem, dot, ending = name.rpartition(".")
    return f".{ending.lower()}" if dot and stem else ""
