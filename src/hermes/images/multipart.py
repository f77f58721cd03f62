"""Encodes forms with files (multipart/form-data)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from hermes.codec.values import Value
from hermes.core.world import World
from hermes.images.pictures import media_type


class Upload(Value):
    field: str
    name: str
    data: bytes


def form(
    fields: Mapping[str, str], files: Sequence[Upload], world: World
) -> tuple[bytes, dict[str, str]]:
    """Return the body and its content type."""
    boundary = world.new_id("hermes", 24)
    while any(boundary.encode() in each.data for each in files):
        boundary = world.new_id("hermes", 24)
    body = bytearray()
    for name, value in fields.items():
        body += f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n'.encode()
        body += value.encode() + b"\r\n"
    for file in files:
        kind = media_type(file.data) or "application/octet-stream"
        body += (
            f'--{boundary}\r\ncontent-disposition: form-data; name="{file.field}"; '
            f'filename="{_safe(file.name)}"\r\ncontent-type: {kind}\r\n\r\n'
        ).encode()
        body += file.data + b"\r\n"
    body += f"--{boundary}--\r\n".encode()
    return bytes(body), {"content-type": f"multipart/form-data; boundary={boundary}"}


def _safe(name: str) -> str:
    return re.sub(r'[^\w.() -]|"', "_", name)[:100] or "image"
